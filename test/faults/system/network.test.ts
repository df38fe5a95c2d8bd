/** Servers that stall, drip, cut off or refuse for half a minute: every document is answered all the same. */
import { afterEach, describe, expect, it } from 'vitest';
import type { SecondBooks } from '../../../src/simulator/books.js';
import { FaultRun } from '../../support/fault-run.js';
import { type SimulatorProcess, startSimulatorProcess } from '../../support/simulator-process.js';
import { waitFor } from '../../support/wait-for.js';

describe('a server that at first', () => {
  let simulator: SimulatorProcess;
  let run: FaultRun;

  afterEach(async () => {
    await simulator.stop();
    run.remove();
  });

  const FAULTED = 8;
  /** Not the first ones: a run whose first calls all fail is stopped. */
  const isFaulted = (index: number): boolean => index % 3 === 2;

  it.each(['hang', 'drip', 'reset', 'reset-mid-body', 'truncated', 'html'])(
    'lets calls meet "%s", answers them at the next attempt',
    async (fault) => {
      simulator = await startSimulatorProcess({ latencyMs: 10 });
      const documents = Array.from({ length: 24 }, (_, index) => ({
        id: `doc-${index}`,
        text: isFaulted(index) ? `[[simulate:${fault}-then-ok 1]] Number ${index}.` : `Number ${index}.`,
      }));
      run = new FaultRun({ simulator, documents, concurrency: 4, flags: ['--timeout', '1s'] });
      const end = await run.live('run');
      expect(end.exitCode, end.stderr).toBe(0);
      const books = await simulator.books();
      expect(books.behaviours[fault]).toBe(FAULTED);
      expect(books.openCalls).toBe(0);
      expect(books.openCallsPeak).toBeLessThanOrEqual(4);
      expect(await run.violations(FAULTED)).toEqual([]);
      // Where a third of the others meet trouble as well, a failure is less than an attempt.
      const used = run.stored().tasks.map(({ attempts }, index) => attempts - (isFaulted(index) ? 1 : 0));
      expect(new Set(used.filter((_, index) => !isFaulted(index)))).toEqual(new Set([1]));
      expect(used.filter((attempts) => attempts > 1 || attempts < 0)).toEqual([]);
    },
  );
});

// Both at once: each is a minute and a half in which twenty calls a second are all there is to do.
describe.concurrent('a storm of 429 for thirty seconds', () => {
  const CONCURRENCY = 20;
  /** So slow that the speed of the machine does not matter. */
  const LATENCY_MS = 1_000;
  const STORM_S = 30;

  function callsIn(timeline: readonly SecondBooks[], from: number, to: number): SecondBooks {
    return timeline
      .filter(({ second }) => second >= from && second < to)
      .reduce(
        (sum, each) => ({
          second: from,
          calls: sum.calls + each.calls,
          accepted: sum.accepted + each.accepted,
          refused: sum.refused + each.refused,
          tokensCharged: sum.tokensCharged + each.tokensCharged,
        }),
        { second: from, calls: 0, accepted: 0, refused: 0, tokensCharged: 0 },
      );
  }

  it.for([
    ['without a word how long', 'none'],
    ['that says to wait two seconds', 2],
  ] as const)(
    '%s, is probed now and then, and full speed is back within ten',
    async ([, retryAfter], { onTestFinished }) => {
      const simulator = await startSimulatorProcess({ latencyMs: LATENCY_MS, retryAfter });
      const run = new FaultRun({ simulator, documents: 1_200, concurrency: CONCURRENCY });
      onTestFinished(async () => {
        await simulator.stop();
        run.remove();
      });
      const program = run.start('run', { deadlineMs: 180_000 });
      const lastSecond = async (): Promise<number> => (await simulator.books()).timeline.at(-1)?.second ?? 0;
      const stormAt = await waitFor(
        'three seconds at full speed',
        async () => {
          const { timeline } = await simulator.books();
          const second = timeline.at(-1)?.second ?? 0;
          return callsIn(timeline, second - 3, second).accepted >= 3 * 0.75 * CONCURRENCY && second;
        },
        60_000,
      );
      await simulator.reconfigure({ outage: { fault: '429', forMs: STORM_S * 1_000 } });
      await waitFor('the storm to end', async () => (await lastSecond()) >= stormAt + STORM_S + 12, 120_000);
      const { timeline } = await simulator.books();
      program.kill('SIGINT');
      const end = await program.ended;
      expect(end.exitCode, end.stderr).toBe(130);

      const before = callsIn(timeline, stormAt - 3, stormAt).accepted / 3;
      // Those that were sent before the first refusal came back are no answer to it.
      const hitAt =
        timeline.find(({ second, refused }) => second >= stormAt && refused > 0)?.second ?? stormAt;
      const storm = callsIn(timeline, hitAt + 1, stormAt + STORM_S);
      const after = Array.from({ length: 10 }, (_each, index) => {
        const second = stormAt + STORM_S + 1 + index;
        return callsIn(timeline, second, second + 1).accepted;
      });
      // Calls come in waves: two seconds together tell the speed.
      const back = after.findIndex((accepted, index) => accepted + (after[index + 1] ?? 0) >= 1.7 * before);
      console.info(
        `${before.toFixed(0)} calls a second before; ${storm.calls} in ${STORM_S - 1} s of storm; then ${after.join(' ')}`,
      );
      expect(callsIn(timeline, stormAt, stormAt + STORM_S + 1).refused).toBeGreaterThan(0);
      expect(storm.accepted).toBe(0);
      expect(storm.calls).toBeLessThanOrEqual(STORM_S / 2);
      expect(back, `full speed within ten seconds: ${after}`).not.toBe(-1);
      const refused = timeline.reduce((sum, second) => sum + second.refused, 0);
      expect(await run.violations(refused, false)).toEqual([]);
    },
  );
});
