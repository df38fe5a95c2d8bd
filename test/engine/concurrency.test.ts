import { describe, expect, test } from 'vitest';
import { type ConcurrencyController, createConcurrencyController } from '../../src/engine/concurrency.js';
import { EventQueue, seededRandom } from '../limiter/simulated-lane.js';

const MINUTE_MS = 60_000;

/** How long an answer takes when so many calls are open; null: the server refuses, overloaded. */
type ServerModel = (openCalls: number, nowMs: number) => number | null;

interface LoadRun {
  readonly answersPerSecond: (fromMs: number, toMs: number) => number;
  readonly limits: readonly number[];
}

/** As many calls as the controller and `heldTo` allow, always; every latency varies by half either way. */
function load(
  controller: ConcurrencyController,
  model: ServerModel,
  untilMs: number,
  seed: number,
  heldTo: (nowMs: number) => number = () => Number.POSITIVE_INFINITY,
): LoadRun {
  const random = seededRandom(seed);
  const events = new EventQueue();
  const answeredAtMs: number[] = [];
  const limits: number[] = [];
  let open = 0;
  const fill = (nowMs: number): void => {
    while (open < Math.min(controller.limit(), heldTo(nowMs)) && nowMs < untilMs) {
      open += 1;
      const latencyMs = model(open, nowMs);
      const varied = (latencyMs ?? 100) * (0.5 + random());
      events.add(nowMs + varied, (endMs) => {
        open -= 1;
        controller.observe(varied, latencyMs !== null, endMs);
        limits.push(controller.limit());
        if (latencyMs !== null) answeredAtMs.push(endMs);
        fill(endMs);
      });
    }
  };
  events.add(0, fill);
  events.runAll();
  const answersPerSecond = (fromMs: number, toMs: number): number =>
    answeredAtMs.filter((atMs) => atMs >= fromMs && atMs < toMs).length / ((toMs - fromMs) / 1_000);
  return { answersPerSecond, limits };
}

function fixed(limit: number): ConcurrencyController {
  return { observe: () => {}, limit: () => limit };
}

function bestFixed(model: ServerModel, fromMs: number, toMs: number, most = 512): number {
  const limits = [1, 2, 4, 8, 12, 16, 24, 32, 36, 40, 44, 50, 60, 80, 120, 180, 256, 512].filter(
    (limit) => limit <= most,
  );
  return Math.max(
    ...limits.map((limit) => load(fixed(limit), model, toMs, 99).answersPerSecond(fromMs, toMs)),
  );
}

const climbsBeyond40: readonly (readonly [string, ServerModel, number])[] = [
  ['in proportion', (open) => 500 * Math.max(1, open / 40), 4],
  ['steeply', (open) => 500 * Math.max(1, open / 40) ** 2, 4],
  ['steeply, and is slow from the start', (open) => 4_000 * Math.max(1, open / 40) ** 2, 20],
  ['by half of that, so that more still helps a little', (open) => 500 + 6 * Math.max(0, open - 40), 4],
];

describe('the number of open calls that is left to the program', () => {
  describe.each(climbsBeyond40)('where latency climbs beyond 40 open calls %s', (_how, model, minutes) => {
    const untilMs = minutes * MINUTE_MS;
    const best = bestFixed(model, untilMs / 2, untilMs, 200);

    test.each([1, 2, 3, 4, 5])('gives at least 90 % of the best fixed number (seed %i)', (seed) => {
      const run = load(createConcurrencyController({ most: 200 }), model, untilMs, seed);
      expect(run.answersPerSecond(untilMs / 2, untilMs)).toBeGreaterThanOrEqual(0.9 * best);
    });
  });

  test('is not what the server merely queues: where answers do not come faster, a few times 40 is never kept', () => {
    const run = load(createConcurrencyController(), (open) => 500 * Math.max(1, open / 40), 4 * MINUTE_MS, 7);
    const kept = run.limits.slice(run.limits.length / 2).sort((a, b) => a - b);
    expect(kept[Math.floor(kept.length / 2)]).toBeLessThanOrEqual(100);
  });

  test('stays low where one call at a time is all the server does', () => {
    const run = load(createConcurrencyController({ initial: 4 }), (open) => 200 * open, 10 * MINUTE_MS, 3);
    expect(run.limits.at(-1)).toBeLessThanOrEqual(12);
  });

  test('grows to the most allowed where nothing ever slows down, and not beyond', () => {
    const run = load(createConcurrencyController({ most: 128 }), () => 500, 2 * MINUTE_MS, 3);
    expect(Math.max(...run.limits)).toBe(128);
    expect(run.limits.at(-1)).toBe(128);
  });

  test('shrinks when the server is overloaded, and soon meets hardly any refusal', () => {
    const model: ServerModel = (open) => (open > 30 ? null : 300);
    const controller = createConcurrencyController();
    let refused = 0;
    const counting: ConcurrencyController = {
      limit: () => controller.limit(),
      observe: (latencyMs, ok, nowMs) => {
        if (!ok && nowMs > MINUTE_MS) refused += 1;
        controller.observe(latencyMs, ok, nowMs);
      },
    };
    const run = load(counting, model, 6 * MINUTE_MS, 5);
    const answers = 300 * run.answersPerSecond(MINUTE_MS, 6 * MINUTE_MS);
    expect(refused / answers).toBeLessThan(0.01);
    expect(run.answersPerSecond(MINUTE_MS, 6 * MINUTE_MS)).toBeGreaterThan(0.7 * (30 / 0.3));
  });

  test('goes back to what was good when more overloads the server, and tries again ever more seldom', () => {
    const triedAtMs: number[] = [];
    const controller = createConcurrencyController();
    const watched: ConcurrencyController = {
      limit: () => controller.limit(),
      observe: (latencyMs, ok, nowMs) => {
        const before = controller.limit();
        controller.observe(latencyMs, ok, nowMs);
        if (before <= 30 && controller.limit() > 30) triedAtMs.push(nowMs);
      },
    };
    load(watched, (open) => (open > 30 ? null : 300), 60 * MINUTE_MS, 5);
    const between = (from: number, to: number): number =>
      triedAtMs.filter((atMs) => atMs >= from * MINUTE_MS && atMs < to * MINUTE_MS).length;
    expect(between(0, 60)).toBeGreaterThanOrEqual(4);
    expect(between(30, 60)).toBeLessThan(between(0, 30));
    expect(between(30, 60)).toBeLessThanOrEqual(6);
  });

  test.each([0.01, 0.05, 0.1])(
    'goes by no refusal that comes whatever their number: %d of all calls',
    (share) => {
      const chance = seededRandom(21);
      const slows = (open: number): number => 500 * Math.max(1, open / 40) ** 2;
      const best = bestFixed(slows, MINUTE_MS, 4 * MINUTE_MS, 200);
      const model: ServerModel = (open) => (chance() < share ? null : slows(open));
      const run = load(createConcurrencyController(), model, 4 * MINUTE_MS, 5);
      expect(run.answersPerSecond(MINUTE_MS, 4 * MINUTE_MS)).toBeGreaterThan(0.8 * (1 - share) * best);
    },
  );

  test('does not shrink for one burst of overload', () => {
    const controller = createConcurrencyController({ initial: 100 });
    for (let call = 0; call < 50; call += 1) controller.observe(100, false, 1_000);
    expect(controller.limit()).toBe(100);
  });

  test('stays what it was while something else holds the calls back', () => {
    const isHeld = (nowMs: number): boolean => nowMs > 2 * MINUTE_MS && nowMs < 6 * MINUTE_MS;
    const held = load(
      createConcurrencyController(),
      (open) => 500 * Math.max(1, open / 40) ** 2,
      7 * MINUTE_MS,
      11,
      (nowMs) => (isHeld(nowMs) ? 5 : Number.POSITIVE_INFINITY),
    );
    expect(held.answersPerSecond(6 * MINUTE_MS + 1_000, 7 * MINUTE_MS)).toBeGreaterThan(0.8 * (40 / 0.5));
  });

  test('shrinks when answers become slower and fewer, and comes back when the server does', () => {
    const model: ServerModel = (open, nowMs) => {
      const slots = nowMs > 2 * MINUTE_MS && nowMs < 6 * MINUTE_MS ? 10 : 40;
      return 500 * Math.max(1, open / slots) ** 2;
    };
    const run = load(createConcurrencyController(), model, 14 * MINUTE_MS, 11);
    expect(run.answersPerSecond(4 * MINUTE_MS, 6 * MINUTE_MS)).toBeGreaterThan(0.8 * (10 / 0.5));
    expect(run.answersPerSecond(11 * MINUTE_MS, 14 * MINUTE_MS)).toBeGreaterThan(0.8 * (40 / 0.5));
  });
});
