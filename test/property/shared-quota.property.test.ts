/**
 * Eight senders under one limit, on a clock that the test holds, against a plain list of what left: whatever answers are
 * late, senders are cut off or die, and writes of the row are lost, no window of all together exceeds the limit, and what
 * there is of it is used.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Clock, type EndSignal, nextTurn } from '../../src/core/clock.js';
import { EXIT_CODES, LlmBatchError } from '../../src/core/errors.js';
import { Gate, type Lane } from '../../src/engine/lane.js';
import { LaneQuota } from '../../src/engine/lane-quota.js';
import { createLimiter } from '../../src/limiter/limiter.js';
import {
  distrusted,
  NO_AMOUNTS,
  QUOTA_LEASE_MS,
  type QuotaAnswer,
  type QuotaAsk,
  type QuotaState,
  shareQuota,
} from '../../src/limiter/shared-quota.js';
import type { QuotaStore } from '../../src/store/quota-store.js';
import { seededRandom } from '../support/seeded-random.js';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;

/** As `FakeClock`, where nobody waits for files or sockets: many times faster. */
class QuickClock implements Clock {
  #nowMs = 0;
  readonly #timers = new Set<{ readonly dueMs: number; readonly callback: () => void }>();

  now = (): number => this.#nowMs;
  monotonicMs = (): number => this.#nowMs;

  sleep(delayMs: number, signal?: EndSignal): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.after(delayMs, resolve);
      signal?.addEventListener('abort', () => {
        cancel();
        resolve();
      });
    });
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { dueMs: this.#nowMs + Math.max(0, delayMs), callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  async advance(byMs: number): Promise<void> {
    const untilMs = this.#nowMs + byMs;
    for (;;) {
      await nextTurn();
      let next: { readonly dueMs: number; readonly callback: () => void } | null = null;
      for (const timer of this.#timers) if (next === null || timer.dueMs < next.dueMs) next = timer;
      if (next === null || next.dueMs > untilMs) break;
      this.#timers.delete(next);
      this.#nowMs = next.dueMs;
      next.callback();
    }
    this.#nowMs = untilMs;
  }
}

interface Sent {
  readonly atMs: number;
  readonly tokens: number;
  readonly sender: number;
}

/** Answers take their time; what was written within `lossMs` before a crash is lost. */
class RowStore implements QuotaStore {
  readonly #clock: QuickClock;
  readonly #random: () => number;
  #state: QuotaState | null = null;
  #history: { readonly atMs: number; readonly state: QuotaState | null }[] = [];
  isDown = false;
  readonly cutOff = new Set<string>();
  readonly dead = new Set<string>();

  constructor(clock: QuickClock, random: () => number) {
    this.#clock = clock;
    this.#random = random;
  }

  async ask(_lane: string, ask: QuotaAsk): Promise<QuotaAnswer> {
    await this.#clock.sleep(this.#random() * 30);
    if (this.isDown || this.#isAway(ask.sender)) {
      throw new LlmBatchError('gone', { code: 'STORE_BUSY', exitCode: EXIT_CODES.store });
    }
    const nowMs = this.#clock.monotonicMs();
    const { state, answer } = shareQuota(this.#state, ask, nowMs);
    this.#history.push({ atMs: nowMs, state: this.#state });
    this.#state = state;
    await this.#clock.sleep(this.#random() * 30);
    if (this.#isAway(ask.sender)) {
      throw new LlmBatchError('no answer', { code: 'STORE_BUSY', exitCode: EXIT_CODES.store });
    }
    return answer;
  }

  #isAway(sender: string): boolean {
    return this.cutOff.has(sender) || this.dead.has(sender);
  }

  crash(lossMs: number): void {
    const nowMs = this.#clock.monotonicMs();
    const lost = this.#history.find(({ atMs }) => atMs > nowMs - lossMs);
    this.#state = distrusted(lost === undefined ? this.#state : lost.state, QUOTA_LEASE_MS, nowMs);
    this.#history = [];
  }
}

class Sender {
  readonly quota: LaneQuota;
  readonly #gate: Gate;
  isDead = false;

  constructor(
    readonly number: number,
    readonly limits: { readonly rpm: number | null; readonly tpm: number | null },
    store: QuotaStore,
    readonly clock: QuickClock,
    readonly random: () => number,
    readonly sent: Sent[],
  ) {
    const limiter = createLimiter({
      ...{ requestsPerMinute: limits.rpm, tokensPerMinute: limits.tpm, random },
    });
    this.quota = new LaneQuota({ store, lane: 'lane', sender: `sender ${number}`, limiter, clock });
    const lane = { name: 'lane', weight: 1, limiter, quota: this.quota } as unknown as Lane;
    this.#gate = new Gate([lane], clock, false);
  }

  die(row: RowStore): void {
    this.isDead = true;
    row.dead.add(`sender ${this.number}`);
  }

  begin(concurrency: number): void {
    this.quota.begin(NO_AMOUNTS);
    for (let slot = 0; slot < concurrency; slot += 1) void this.#sendOn();
  }

  async #sendOn(): Promise<void> {
    const { clock, random } = this;
    while (!this.isDead) {
      const tokens = 20 + Math.floor(random() * 60);
      const admission = await this.#gate.admit({ requests: 1, tokens });
      if (!admission.admitted) throw new Error(JSON.stringify(admission));
      await clock.sleep(random() * 20);
      if (this.isDead) return;
      const { lane, grant } = admission;
      if (!lane.limiter.sent(grant, clock.monotonicMs())) continue;
      this.sent.push({ atMs: clock.monotonicMs(), tokens, sender: this.number });
      await clock.sleep(50 + random() * 400);
      lane.limiter.commit(grant, tokens, clock.monotonicMs());
      lane.limiter.succeeded(clock.monotonicMs(), grant);
    }
  }
}

/** The most of any window, wherever its edges are. */
function peakOf(sent: readonly Sent[], amountOf: (each: Sent) => number): number {
  let peak = 0;
  let sum = 0;
  let oldest = 0;
  for (const each of sent) {
    sum += amountOf(each);
    for (let first = sent[oldest]; first !== undefined && first.atMs <= each.atMs - MINUTE_MS; ) {
      sum -= amountOf(first);
      oldest += 1;
      first = sent[oldest];
    }
    peak = Math.max(peak, sum);
  }
  return peak;
}

async function play(
  limits: { readonly rpm: number | null; readonly tpm: number | null },
  seed: number,
  minutes: number,
  disturb: (row: RowStore, senders: readonly Sender[], random: () => number) => void,
) {
  const clock = new QuickClock();
  const random = seededRandom(seed);
  const row = new RowStore(clock, random);
  const sent: Sent[] = [];
  const senders = Array.from(
    { length: 8 },
    (_, index) => new Sender(index, limits, row, clock, random, sent),
  );
  for (const sender of senders) sender.begin(4);
  await clock.advance(SECOND_MS);
  for (let second = 0; second < minutes * 60; second += 1) {
    disturb(row, senders, random);
    await clock.advance(SECOND_MS);
  }
  return { sent };
}

const limits = fc.constantFrom(
  { rpm: 40, tpm: null },
  { rpm: null, tpm: 3_000 },
  { rpm: 60, tpm: 2_500 },
  { rpm: 8, tpm: null },
);

test('no window of eight senders exceeds the limit, whatever dies, is cut off, or is forgotten', async () => {
  await fc.assert(
    fc.asyncProperty(limits, fc.nat(), async (limit, seed) => {
      const { sent } = await play(limit, seed, 2, (row, senders, random) => {
        const one = senders[Math.floor(random() * senders.length)] as Sender;
        const what = random();
        if (what < 0.03) one.die(row);
        else if (what < 0.1) row.cutOff.add(`sender ${one.number}`);
        else if (what < 0.2) row.cutOff.clear();
        else if (what < 0.22) row.crash(600);
        row.isDown = what > 0.95;
      });
      expect(peakOf(sent, () => 1)).toBeLessThanOrEqual(limit.rpm ?? Infinity);
      expect(peakOf(sent, ({ tokens }) => tokens)).toBeLessThanOrEqual(limit.tpm ?? Infinity);
      expect(sent.length).toBeGreaterThan(0);
    }),
    { numRuns: 12 },
  );
});

test('what there is goes round: nearly all of it is used, and each sender has its part', async () => {
  const { sent } = await play({ rpm: 120, tpm: null }, 1, 5, () => undefined);
  expect(peakOf(sent, () => 1)).toBeLessThanOrEqual(120);
  const later = sent.filter(({ atMs }) => atMs > MINUTE_MS);
  expect(later.length).toBeGreaterThan(0.95 * 4 * 120);
  const shares = Array.from(
    { length: 8 },
    (_, index) => later.filter(({ sender }) => sender === index).length,
  );
  expect(Math.min(...shares)).toBeGreaterThan(later.length / 8 / 2);
});

test('what a dead sender had is used by the others a window later', async () => {
  let second = 0;
  const { sent } = await play({ rpm: 120, tpm: null }, 2, 6, (row, senders) => {
    second += 1;
    if (second === 60) for (const sender of senders.slice(1)) sender.die(row);
  });
  const later = sent.filter(({ atMs }) => atMs > 3 * MINUTE_MS);
  expect(later.length).toBeGreaterThan(0.95 * 3 * 120);
  expect(new Set(later.map(({ sender }) => sender))).toEqual(new Set([0]));
});
