/**
 * Servers as they stand in front of language models (nginx, haproxy, gateways, providers), in the rules that they
 * enforce, and what a lane brings before each of them. Nothing here knows how the limiter works.
 */
import { createConcurrencyController } from '../../src/engine/concurrency.js';
import { createLimiter, type RefusalReason } from '../../src/limiter/limiter.js';
import { bucket, fixedSpans, type Rule, rolling } from './fake-servers.js';
import {
  acceptedBetween,
  type CallRecord,
  type FakeServer,
  refusedBetween,
  runLane,
  type ServerReply,
  seededRandom,
} from './simulated-lane.js';

const MINUTE_MS = 60_000;
const MINUTES = 6;
const OPEN_CALLS = 16;
const MEAN_ANSWER_MS = 500;

/** How a server turns a call away. */
export type Refusing = 429 | 503;

interface ServerSetting {
  readonly random: () => number;
  readonly refusing: Refusing;
}

export interface ServerKind {
  readonly name: string;
  readonly make: (setting: ServerSetting) => FakeServer;
  /** What it can let in; null: as many as are asked of it. */
  readonly perMinute: number | null;
  /** As its owner would tell it. */
  readonly declared: number;
  /** Refuses everything between these moments of the run, with a wait for no reason of speed. */
  readonly shutMs?: readonly [number, number];
}

function refusal(refusing: Refusing, more: Partial<ServerReply> = {}): ServerReply {
  const reason: RefusalReason = refusing === 503 ? 'overload' : 'rate';
  return { accepted: false, reason, ...more };
}

function answerMs(random: () => number): number {
  return 200 + 600 * random();
}

/** A rule that is asked once a call. @param countsRefused whether calls that are turned away count as well */
function ruled(rule: () => Rule, countsRefused = false, more: Partial<ServerReply> = {}): ServerKind['make'] {
  return ({ refusing }) => {
    const books = rule();
    return {
      arrive(_call, nowMs) {
        const accepted = books.admits(1, nowMs);
        if (accepted || countsRefused) books.charge(1, nowMs);
        return accepted ? { accepted } : refusal(refusing, more);
      },
    };
  };
}

/** nginx's limit_req: `excess` leaks at the rate; a call over the burst is refused and adds nothing. */
function leakyBucket(perSecond: number, burst: number, delays: boolean): ServerKind['make'] {
  return ({ random, refusing }) => {
    let excess = 0;
    let asOfMs = Number.NEGATIVE_INFINITY;
    return {
      arrive(_call, nowMs) {
        // In thousandths of a call and whole milliseconds, as nginx counts.
        const passed = Math.min(1e9, Math.floor(nowMs) - asOfMs);
        const now =
          asOfMs === Number.NEGATIVE_INFINITY ? 0 : Math.max(0, excess - perSecond * passed + 1_000);
        if (now > burst * 1_000) return refusal(refusing);
        excess = now;
        asOfMs = Math.floor(nowMs);
        return { accepted: true, afterMs: answerMs(random) + (delays ? excess / perSecond : 0) };
      },
    };
  };
}

/** nginx's limit_conn, or a pool with a queue before it: so many work, so many wait, the others are refused. */
function slots(working: number, waiting: number): ServerKind['make'] {
  return ({ random, refusing }) => {
    const freeAtMs: number[] = Array.from({ length: working }, () => 0);
    let endsAtMs: number[] = [];
    return {
      arrive(_call, nowMs) {
        endsAtMs = endsAtMs.filter((atMs) => atMs > nowMs);
        if (endsAtMs.length >= working + waiting) return refusal(refusing);
        freeAtMs.sort((one, other) => one - other);
        const endMs = Math.max(nowMs, freeAtMs[0] ?? 0) + answerMs(random);
        freeAtMs[0] = endMs;
        endsAtMs.push(endMs);
        return { accepted: true, afterMs: endMs - nowMs };
      },
    };
  };
}

/** Answers grow slower beyond so many open calls, as with a model on cards of one's own. */
function workers(atOnce: number): ServerKind['make'] {
  return ({ random }) => {
    let endsAtMs: number[] = [];
    return {
      arrive(_call, nowMs) {
        endsAtMs = endsAtMs.filter((atMs) => atMs > nowMs);
        const afterMs = answerMs(random) * Math.max(1, (endsAtMs.length + 1) / atOnce);
        endsAtMs.push(nowMs + afterMs);
        return { accepted: true, afterMs };
      },
    };
  };
}

function shutBetween(fromMs: number, toMs: number, make: ServerKind['make']): ServerKind['make'] {
  return (setting) => {
    const server = make(setting);
    return {
      arrive: (call, nowMs) =>
        nowMs >= fromMs && nowMs < toMs ? refusal(setting.refusing) : server.arrive(call, nowMs),
    };
  };
}

/** More than this many open calls only wait longer; what `auto` has to find. */
const AT_ONCE = 40;
const FREE: ServerKind = {
  name: 'no limit',
  make: workers(AT_ONCE),
  perMinute: null,
  declared: 1_500,
};

export const LIMITED: readonly ServerKind[] = [
  { name: 'limit_req 10/s', make: leakyBucket(10, 0, false), perMinute: 600, declared: 600 },
  { name: 'limit_req 10/s burst 20', make: leakyBucket(10, 20, true), perMinute: 600, declared: 600 },
  {
    name: 'limit_req 10/s burst 20 nodelay',
    make: leakyBucket(10, 20, false),
    perMinute: 600,
    declared: 600,
  },
  { name: 'limit_conn 8', make: slots(8, 0), perMinute: (8 * MINUTE_MS) / MEAN_ANSWER_MS, declared: 1_500 },
  {
    name: 'queue of 8 slots, 4 work',
    make: slots(4, 8),
    perMinute: (4 * MINUTE_MS) / MEAN_ANSWER_MS,
    declared: 1_500,
  },
  {
    name: 'stick-table 10 in 1 s',
    make: ruled(() => rolling(10, 1_000), true),
    perMinute: 600,
    declared: 600,
  },
  {
    name: 'stick-table 10 in 1 s, Retry-After',
    make: ruled(() => rolling(10, 1_000), true, { retryAfterMs: 1_000 }),
    perMinute: 600,
    declared: 600,
  },
  {
    name: 'stick-table 100 in 10 s',
    make: ruled(() => rolling(100, 10_000), true),
    perMinute: 600,
    declared: 600,
  },
  {
    name: 'stick-table 100 in 10 s, Retry-After',
    make: ruled(() => rolling(100, 10_000), true, { retryAfterMs: 10_000 }),
    perMinute: 600,
    declared: 600,
  },
  {
    name: 'tarpit of 5 s beyond 100 in 10 s',
    make: ruled(() => rolling(100, 10_000), false, { afterMs: 5_000 }),
    perMinute: 600,
    declared: 600,
  },
  { name: 'token bucket of 20, 10/s', make: ruled(() => bucket(20, 10)), perMinute: 600, declared: 600 },
  {
    name: 'rolling minute of 600',
    make: ruled(() => rolling(600, MINUTE_MS)),
    perMinute: 600,
    declared: 600,
  },
  {
    name: 'rolling minute of half of what is declared',
    make: ruled(() => rolling(300, MINUTE_MS)),
    perMinute: 300,
    declared: 600,
  },
  {
    name: 'fixed minute of 600',
    make: ruled(() => fixedSpans(600, MINUTE_MS)),
    perMinute: 600,
    declared: 600,
  },
  { name: 'hidden 10 s of 100', make: ruled(() => rolling(100, 10_000)), perMinute: 600, declared: 600 },
];

export const UNLIMITED: readonly ServerKind[] = [
  FREE,
  {
    ...FREE,
    name: 'storm of 30 s',
    make: shutBetween(150_000, 180_000, FREE.make),
    shutMs: [150_000, 180_000],
  },
];

export interface Chance {
  /** Of all calls, whatever their speed. */
  readonly share: number;
  /** 502 is a failure of the call and no refusal. */
  readonly status: 429 | 503 | 502;
}

export interface Case {
  readonly server: ServerKind;
  readonly refusing: Refusing;
  readonly chance: Chance | null;
  readonly concurrency: 'fixed' | 'auto';
  readonly declares: boolean;
}

export function nameOf({ server, refusing, chance, concurrency, declares }: Case): string {
  const random = chance === null ? '' : ` + ${chance.share * 100} % of ${chance.status}`;
  return `${server.name} (${refusing})${random}, ${concurrency}, ${declares ? 'declared' : 'not declared'}`;
}

function withChance(server: FakeServer, chance: Chance | null, seed: number): FakeServer {
  if (chance === null) return server;
  const random = seededRandom(seed);
  return {
    arrive(call, nowMs) {
      if (random() >= chance.share) return server.arrive(call, nowMs);
      return chance.status === 502 ? { accepted: false, broken: true } : refusal(chance.status);
    },
  };
}

/** Without any limiter: what such a number of open calls brings where nothing is limited. */
const FREE_PER_MINUTE: Readonly<Record<Case['concurrency'], number>> = {
  fixed: (OPEN_CALLS * MINUTE_MS) / (MEAN_ANSWER_MS + 13),
  auto: (AT_ONCE * MINUTE_MS) / (MEAN_ANSWER_MS + 13),
};

export interface Figures {
  /** Let in after the first minute, of what was possible. */
  readonly used: number;
  /** Refused after the first minute, of all calls, beyond the server's own chance. */
  readonly refusedBeyond: number;
  readonly firstMinute: { readonly letIn: number; readonly refused: number };
  readonly possiblePerMinute: number;
}

export function play(
  each: Case,
  seed: number,
  minutes = MINUTES,
): { figures: Figures; records: readonly CallRecord[] } {
  const { server, refusing, chance } = each;
  const random = seededRandom(seed);
  const untilMs = minutes * MINUTE_MS;
  const declared = each.declares ? server.declared : null;
  const records = runLane({
    limiter: createLimiter({ requestsPerMinute: declared, tokensPerMinute: null, random }),
    server: withChance(server.make({ random, refusing }), chance, seed + 1),
    random,
    workers: each.concurrency === 'auto' ? createConcurrencyController() : OPEN_CALLS,
    untilMs,
    answerMs: () => answerMs(random),
    wayThereMs: () => 2 + 3 * random(),
    sendsAfterMs: () => 3 * random(),
    refusalMs: () => 5 + 20 * random(),
  });
  const letThrough = 1 - (chance?.share ?? 0);
  const possiblePerMinute = Math.min(
    server.perMinute ?? Number.POSITIVE_INFINITY,
    (declared ?? Number.POSITIVE_INFINITY) * letThrough,
    FREE_PER_MINUTE[each.concurrency] * letThrough,
  );
  const shutMs = server.shutMs === undefined ? 0 : server.shutMs[1] - server.shutMs[0];
  const letIn = acceptedBetween(records, MINUTE_MS, untilMs);
  const refused = refusedBetween(records, MINUTE_MS, untilMs);
  const called = records.filter((call) => call.arrivedAtMs >= MINUTE_MS && call.arrivedAtMs < untilMs).length;
  return {
    records,
    figures: {
      used: letIn / ((possiblePerMinute * (untilMs - MINUTE_MS - shutMs)) / MINUTE_MS),
      refusedBeyond: refused / called - (chance === null || chance.status === 502 ? 0 : chance.share),
      firstMinute: {
        letIn: acceptedBetween(records, 0, MINUTE_MS),
        refused: refusedBetween(records, 0, MINUTE_MS),
      },
      possiblePerMinute,
    },
  };
}

const SHARES = [0.01, 0.02, 0.05, 0.1];

/** Every server, each way of refusing, every chance, fixed and auto, declared and not. */
export function* allCases(): Generator<Case> {
  for (const concurrency of ['fixed', 'auto'] as const) {
    for (const declares of [true, false]) {
      for (const server of LIMITED) {
        for (const refusing of [429, 503] as const) {
          yield { server, refusing, chance: null, concurrency, declares };
          for (const share of SHARES) {
            for (const status of [429, 503, 502] as const) {
              yield { server, refusing, chance: { share, status }, concurrency, declares };
            }
          }
        }
      }
      for (const server of UNLIMITED) {
        yield { server, refusing: 429, chance: null, concurrency, declares };
        for (const share of SHARES) {
          for (const status of [429, 503, 502] as const) {
            yield { server, refusing: 429, chance: { share, status }, concurrency, declares };
          }
        }
      }
    }
  }
}

/** The least that has to be used of what is possible. */
export function wanted({ server, chance, concurrency }: Case): number {
  if (concurrency === 'auto') return 0.8;
  return chance !== null && server.perMinute !== null ? 0.85 : 0.9;
}

export const MOST_REFUSED_BEYOND = 0.03;

interface Shortfall {
  readonly used: number;
  readonly refusedBeyond: number;
}

/** By how much a case misses what is wanted, at most: what is left to mend. */
const SHORTFALLS: Readonly<Record<string, Shortfall>> = {
  'limit_conn 8, fixed, declared, random': { used: 0.04, refusedBeyond: 0 },
  'tarpit of 5 s beyond 100 in 10 s, fixed, declared, random': { used: 0, refusedBeyond: 0.01 },
  'limit_req 10/s, fixed, not declared, random': { used: 0.07, refusedBeyond: 0 },
  'limit_req 10/s burst 20 nodelay, fixed, not declared, random': { used: 0, refusedBeyond: 0.05 },
  'stick-table 10 in 1 s, fixed, not declared, random': { used: 0.07, refusedBeyond: 0 },
  'stick-table 10 in 1 s, Retry-After, fixed, not declared, random': { used: 0.04, refusedBeyond: 0 },
  'stick-table 100 in 10 s, fixed, not declared, random': { used: 0.01, refusedBeyond: 0 },
  'stick-table 100 in 10 s, Retry-After, fixed, not declared': { used: 0.02, refusedBeyond: 0 },
  'stick-table 100 in 10 s, Retry-After, fixed, not declared, random': { used: 0.11, refusedBeyond: 0 },
  'tarpit of 5 s beyond 100 in 10 s, fixed, not declared': { used: 0, refusedBeyond: 0.01 },
  'tarpit of 5 s beyond 100 in 10 s, fixed, not declared, random': { used: 0.07, refusedBeyond: 0.01 },
  'token bucket of 20, 10/s, fixed, not declared, random': { used: 0, refusedBeyond: 0.01 },
  'rolling minute of half of what is declared, fixed, not declared, random': { used: 0.05, refusedBeyond: 0 },
  'limit_req 10/s burst 20, auto, not declared': { used: 0, refusedBeyond: 0.01 },
  'token bucket of 20, 10/s, auto, not declared': { used: 0, refusedBeyond: 0.01 },
};

export function shortfallOf({ server, chance, concurrency, declares }: Case): Shortfall {
  const key = `${server.name}, ${concurrency}, ${declares ? 'declared' : 'not declared'}${chance === null ? '' : ', random'}`;
  return SHORTFALLS[key] ?? { used: 0, refusedBeyond: 0 };
}
