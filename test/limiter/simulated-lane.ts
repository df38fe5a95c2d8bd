/**
 * A lane without network or time: a pool of workers behind one gate asks the limiter, calls travel to a fake
 * server and back, and everything happens on a clock that jumps from event to event. It keeps its own books.
 */
import type { RateLimitHints } from '../../src/core/limits.js';
import type { ConcurrencyController } from '../../src/engine/concurrency.js';
import type { Cost, Grant, Limiter, RefusalReason } from '../../src/limiter/limiter.js';

/** One call as the server sees it. */
export interface ArrivingCall {
  readonly promptTokens: number;
  readonly outputCap: number;
  readonly outputTokens: number;
}

export interface ServerReply {
  readonly accepted: boolean;
  /** From the call's arrival to its answer, where the server's own state decides; absent: the lane's options do. */
  readonly afterMs?: number;
  /** Neither let in nor refused: the server broke down over this call (500, 502). */
  readonly broken?: boolean;
  readonly retryAfterMs?: number;
  readonly reason?: RefusalReason;
  readonly hints?: RateLimitHints;
}

export interface FakeServer {
  arrive(call: ArrivingCall, nowMs: number): ServerReply;
}

export interface CallRecord {
  readonly sentAtMs: number;
  arrivedAtMs: number;
  accepted: boolean;
  broken: boolean;
}

export interface LaneOptions {
  readonly limiter: Limiter;
  readonly server: FakeServer;
  readonly random: () => number;
  /** Calls open at once, or who decides it. */
  readonly workers: number | ConcurrencyController;
  /** No call starts at or after this moment. */
  readonly untilMs: number;
  readonly wayThereMs?: () => number;
  readonly answerMs?: () => number;
  readonly refusalMs?: () => number;
  readonly call?: () => ArrivingCall;
  readonly cost?: (call: ArrivingCall) => Cost;
  /** What happens to the lane from outside; the gate looks at its queue again after it. */
  readonly happenings?: readonly { readonly atMs: number; readonly happen: () => void }[];
  readonly onAnswer?: (call: ArrivingCall) => void;
  /** From the grant to the socket: the call is written down first. */
  readonly sendsAfterMs?: () => number;
  /** How late a timer fires; real ones are late by a millisecond or so. */
  readonly timerLateMs?: () => number;
}

const SMALL_CALL: ArrivingCall = { promptTokens: 10, outputCap: 10, outputTokens: 10 };

/** Seeded, so that a failure can be repeated (mulberry32, public domain). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export function runLane(options: LaneOptions): CallRecord[] {
  const { limiter, server, random } = options;
  const wayThereMs = options.wayThereMs ?? (() => 5 + 10 * random());
  const answerMs = options.answerMs ?? (() => 20 + 1_980 * random());
  const refusalMs = options.refusalMs ?? (() => 20 + 80 * random());
  const sendsAfterMs = options.sendsAfterMs ?? (() => 6 * random());
  const timerLateMs = options.timerLateMs ?? (() => 1.5 * random());
  const records: CallRecord[] = [];
  const events = new EventQueue();
  const { workers } = options;
  let openCalls = 0;
  let wakeAtMs = Number.POSITIVE_INFINITY;

  const ask = (nowMs: number): void => {
    while (openCalls < (typeof workers === 'number' ? workers : workers.limit()) && nowMs < options.untilMs) {
      const call = options.call?.() ?? SMALL_CALL;
      const cost = options.cost?.(call) ?? { requests: 1, tokens: call.promptTokens + call.outputTokens };
      const reservation = limiter.reserve(cost, nowMs);
      if (reservation.granted) {
        openCalls += 1;
        start(call, reservation.grant, nowMs);
        continue;
      }
      if (reservation.impossible) throw new Error(reservation.reason);
      const atMs = nowMs + Math.max(0.01, reservation.waitMs) + timerLateMs();
      if (atMs < wakeAtMs) {
        wakeAtMs = atMs;
        events.add(atMs, (thenMs) => {
          if (thenMs !== wakeAtMs) return;
          wakeAtMs = Number.POSITIVE_INFINITY;
          ask(thenMs);
        });
      }
      return;
    }
  };

  const start = (call: ArrivingCall, grant: Grant, grantedAtMs: number): void => {
    events.add(grantedAtMs + sendsAfterMs(), (nowMs) => send(call, grant, nowMs));
  };

  const send = (call: ArrivingCall, grant: Grant, nowMs: number): void => {
    if (!limiter.sent(grant, nowMs)) {
      openCalls -= 1;
      ask(nowMs);
      return;
    }
    const record: CallRecord = { sentAtMs: nowMs, arrivedAtMs: Number.NaN, accepted: false, broken: false };
    records.push(record);
    events.add(nowMs + wayThereMs(), (arrivedAtMs) => {
      const reply = server.arrive(call, arrivedAtMs);
      record.arrivedAtMs = arrivedAtMs;
      record.accepted = reply.accepted;
      record.broken = reply.broken ?? false;
      events.add(arrivedAtMs + (reply.afterMs ?? (reply.accepted ? answerMs() : refusalMs())), (endMs) => {
        limiter.observe(reply.hints ?? {}, endMs, grant);
        if (reply.accepted) {
          limiter.commit(grant, call.promptTokens + call.outputTokens, endMs);
          limiter.succeeded(endMs, grant);
          options.onAnswer?.(call);
        } else if (reply.broken) {
          limiter.commit(grant, null, endMs);
        } else {
          limiter.commit(grant, reply.reason === 'overload' ? null : 0, endMs);
          limiter.throttled(reply.retryAfterMs ?? null, endMs, grant, reply.reason);
        }
        // As the engine does: a refusal for quota says nothing of how many calls the server can work on at once.
        const ofQuota = !reply.accepted && !reply.broken && reply.reason !== 'overload';
        if (typeof workers !== 'number' && !ofQuota) workers.observe(endMs - nowMs, reply.accepted, endMs);
        openCalls -= 1;
        ask(endMs);
      });
    });
  };

  events.add(0, ask);
  for (const { atMs, happen } of options.happenings ?? []) {
    events.add(atMs, (nowMs) => {
      happen();
      ask(nowMs);
    });
  }
  events.runAll();
  return records;
}

export function acceptedBetween(records: readonly CallRecord[], fromMs: number, toMs: number): number {
  return records.filter((call) => call.accepted && call.arrivedAtMs >= fromMs && call.arrivedAtMs < toMs)
    .length;
}

export function refusedBetween(records: readonly CallRecord[], fromMs: number, toMs: number): number {
  return records.filter(
    (call) => !call.accepted && !call.broken && call.arrivedAtMs >= fromMs && call.arrivedAtMs < toMs,
  ).length;
}

type Happening = (nowMs: number) => void;

/** A binary heap; events of one moment happen in the order they were added. */
export class EventQueue {
  readonly #heap: { atMs: number; order: number; happening: Happening }[] = [];
  #order = 0;

  add(atMs: number, happening: Happening): void {
    const heap = this.#heap;
    heap.push({ atMs, order: this.#order++, happening });
    for (let child = heap.length - 1; child > 0; ) {
      const parent = (child - 1) >> 1;
      if (!this.#before(child, parent)) break;
      this.#swap(child, parent);
      child = parent;
    }
  }

  runAll(): void {
    for (let next = this.#take(); next !== undefined; next = this.#take()) next.happening(next.atMs);
  }

  #take(): { atMs: number; happening: Happening } | undefined {
    const heap = this.#heap;
    const top = heap[0];
    const last = heap.pop();
    if (top === undefined || last === undefined || heap.length === 0) return top;
    heap[0] = last;
    for (let parent = 0; ; ) {
      let least = parent;
      for (const child of [2 * parent + 1, 2 * parent + 2]) {
        if (child < heap.length && this.#before(child, least)) least = child;
      }
      if (least === parent) return top;
      this.#swap(parent, least);
      parent = least;
    }
  }

  #before(one: number, other: number): boolean {
    const a = this.#heap[one];
    const b = this.#heap[other];
    if (a === undefined || b === undefined) return false;
    return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
  }

  #swap(one: number, other: number): void {
    const a = this.#heap[one];
    const b = this.#heap[other];
    if (a === undefined || b === undefined) return;
    this.#heap[one] = b;
    this.#heap[other] = a;
  }
}
