/**
 * `--max-cost` over the whole engine and a real store, against a server that keeps its own bill: it knows what it
 * really charged for calls of which the program never heard the end.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Random } from '../../src/core/clock.js';
import type { EndpointName } from '../../src/core/endpoint-name.js';
import type { FailureKind } from '../../src/core/failure.js';
import type { JsonObject } from '../../src/core/json.js';
import type { BilledUsage } from '../../src/core/usage.js';
import type { Lane } from '../../src/engine/lane.js';
import type { SendingWay } from '../../src/engine/sending-way.js';
import { createLimiter } from '../../src/limiter/limiter.js';
import { billedMicroUsd, worstCaseAtTier } from '../../src/pricing/cost.js';
import { type ModelPrice, type RateTable, tokenRates } from '../../src/pricing/price-book.js';
import type { Provider, ProviderReply, ProviderRequest, SendOptions } from '../../src/provider/provider.js';
import { answered } from '../support/answered.js';
import { FakeClock } from '../support/fake-clock.js';
import { seededRandom } from '../support/seeded-random.js';
import { StoredRun } from '../support/stored-run.js';

/** Whole micro-dollars a token. */
interface Rates {
  readonly input: number;
  readonly cachedInput: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly reasoning: number;
}

interface Scenario {
  readonly seed: number;
  readonly documents: number;
  readonly concurrency: number;
  readonly standard: Rates;
  readonly priority: Rates;
  readonly serviceTier: 'none' | 'default' | 'flex' | 'auto' | 'priority';
  readonly endpoint: EndpointName;
  /** Where requests go several in a call, whatever endpoint they are of; null: nowhere. */
  readonly groupUrl: '/batch' | null;
  /** Documents in a call where the endpoint, or that address, takes several. */
  readonly groupMax: number;
  /** Of one document; what has no output pays for none. */
  readonly outputCap: number;
  /** The cap on cost, in worst cases of one document. */
  readonly callsWorth: number;
  /** Of the bound that an answer uses. */
  readonly longestShare: number;
  readonly failureShare: number;
  readonly stop: { readonly kind: 'never' | 'stop' | 'abort'; readonly afterMs: number };
}

const rate = fc.integer({ min: 0, max: 40 });
const rates: fc.Arbitrary<Rates> = fc.record({
  input: rate,
  cachedInput: rate,
  cacheWrite: rate,
  output: fc.integer({ min: 1, max: 200 }),
  reasoning: fc.integer({ min: 1, max: 200 }),
});

const scenario: fc.Arbitrary<Scenario> = fc
  .record({
    // Moderations cost nothing: see commands/endpoints.
    endpoint: fc.constantFrom('chat', 'responses', 'embeddings', 'completions'),
    groupUrl: fc.constantFrom(null, '/batch'),
    groupMax: fc.constantFrom(1, 7),
    seed: fc.nat(),
    documents: fc.integer({ min: 1, max: 40 }),
    concurrency: fc.integer({ min: 1, max: 64 }),
    standard: rates,
    priority: rates,
    serviceTier: fc.constantFrom('none', 'default', 'flex', 'auto', 'priority'),
    outputCap: fc.integer({ min: 1, max: 400 }),
    callsWorth: fc.double({ min: 0.5, max: 30, noNaN: true }),
    longestShare: fc.double({ min: 0, max: 1, noNaN: true }),
    failureShare: fc.constantFrom(0, 0.2, 0.6),
    stop: fc.record({
      kind: fc.constantFrom('never', 'never', 'never', 'stop', 'abort'),
      afterMs: fc.integer({ min: 0, max: 3_000 }),
    }),
  })
  .map(({ endpoint, groupUrl, groupMax, outputCap, ...of }) => ({
    ...of,
    endpoint,
    groupUrl,
    // Those without output are sent alone here: by their caps the server tells how many share a call.
    groupMax: endpoint === 'completions' || (groupUrl !== null && endpoint !== 'embeddings') ? groupMax : 1,
    outputCap: endpoint === 'embeddings' ? 0 : outputCap,
  }));

/** How an endpoint is told the cap of one document's output. */
const CAPS: Readonly<Record<string, (cap: number) => JsonObject>> = {
  chat: (cap) => ({ max_tokens: cap }),
  responses: (cap) => ({ max_output_tokens: cap }),
  embeddings: () => ({}),
  completions: (cap) => (cap % 2 === 0 ? { max_tokens: cap / 2, best_of: 2 } : { max_tokens: cap }),
};

/** What each failure was billed: as an answer, nothing, or what nobody but the server knows. */
const FAILURES: readonly (readonly [FailureKind, number | undefined, 'usage' | 'nothing' | 'unknown'])[] = [
  ['truncated', 200, 'usage'],
  ['content_filtered', 200, 'usage'],
  ['refused', 200, 'usage'],
  ['bad_output', 200, 'usage'],
  ['bad_output', 200, 'unknown'],
  ['network', undefined, 'unknown'],
  ['timeout', undefined, 'unknown'],
  ['overloaded', 500, 'nothing'],
  ['overloaded', 503, 'nothing'],
  ['rate_limited', 429, 'nothing'],
  ['invalid_request', 400, 'nothing'],
  ['too_large', 413, 'nothing'],
];

function rateTable({ input, cachedInput, cacheWrite, output, reasoning }: Rates): RateTable {
  const atto = (microUsd: number): bigint => BigInt(microUsd) * 10n ** 12n;
  return {
    base: tokenRates({
      input: atto(input),
      cachedInput: atto(cachedInput),
      cacheWrite: atto(cacheWrite),
      output: atto(output),
      reasoning: atto(reasoning),
    }),
    above: [],
  };
}

function halved(of: Rates): Rates {
  const half = (microUsd: number): number => Math.floor(microUsd / 2);
  return {
    input: half(of.input),
    cachedInput: half(of.cachedInput),
    cacheWrite: half(of.cacheWrite),
    output: half(of.output),
    reasoning: half(of.reasoning),
  };
}

/** The server's own arithmetic, apart from the program's. */
function bill(usage: BilledUsage, of: Rates): number {
  const written = usage.cacheWriteTokens ?? 0;
  return (
    (usage.inputTokens - usage.cachedTokens - written) * of.input +
    usage.cachedTokens * of.cachedInput +
    written * of.cacheWrite +
    (usage.outputTokens - usage.reasoningTokens) * of.output +
    usage.reasoningTokens * of.reasoning
  );
}

class BillingServer implements Provider {
  readonly #scenario: Scenario;
  readonly #clock: FakeClock;
  readonly #random: Random;
  readonly #ratesOf: Readonly<Record<string, Rates>>;
  /** Of one document, as the program bounds it; all are alike. */
  inputBound = 0;
  billed = 0;
  /** What of it the program was told, and how often it was left to guess. */
  told = 0;
  untold = 0;

  constructor(of: Scenario, clock: FakeClock) {
    this.#scenario = of;
    this.#clock = clock;
    this.#random = seededRandom(of.seed);
    this.#ratesOf = { default: of.standard, flex: halved(of.standard), priority: of.priority };
  }

  async send({ parts }: ProviderRequest, { signal, timeoutMs }: SendOptions): Promise<ProviderReply> {
    const { failureShare } = this.#scenario;
    const failure = this.#random() < failureShare ? this.#pick(FAILURES) : null;
    const usage = this.#usage(parts);
    const cost = bill(usage, this.#ratesOf[usage.serviceTier ?? 'default'] ?? this.#scenario.standard);
    const isBilled = failure?.[2] !== 'nothing';
    if (isBilled) this.billed += cost;
    const hangs = failure?.[0] === 'timeout';
    await this.#clock.sleep(hangs ? timeoutMs : 1 + Math.floor(this.#random() * 400), signal);
    if (signal.aborted) {
      // Cut off by us: whether it was refused or answered, the program does not know.
      this.untold += parts;
      return { ok: false, aborted: true };
    }
    const isTold = failure === null ? this.#random() < 0.9 : failure[2] === 'usage';
    if (isBilled && isTold) this.told += cost;
    if (isBilled && !isTold) this.untold += parts;
    const reply = { usage: isTold ? usage : null, costMicroUsd: null, hints: {} };
    if (failure === null) {
      const answer = {
        parts: Array.from({ length: parts }, () => answered('fine')),
        model: 'm',
        httpStatus: 200,
        requestId: null,
      };
      return { ok: true, ...answer, ...reply };
    }
    const [kind, httpStatus] = failure;
    return {
      ok: false,
      failure: { kind, message: 'no', ...(httpStatus === undefined ? {} : { httpStatus }) },
      ...reply,
    };
  }

  probe(): Promise<never> {
    return Promise.reject(new Error('nobody asks'));
  }

  async close(): Promise<void> {}

  /** At times the very most that the program reckons with. */
  #usage(parts: number): BilledUsage {
    const { longestShare } = this.#scenario;
    const outputCap = parts * this.#scenario.outputCap;
    const inputBound = parts * this.inputBound;
    const upTo = (most: number): number => Math.floor(most * this.#random() * 1.25);
    const inputTokens = Math.min(inputBound, upTo(inputBound));
    const outputTokens = Math.min(outputCap, upTo(outputCap * longestShare));
    const cachedTokens = Math.min(inputTokens, upTo(inputTokens));
    const cacheWriteTokens = Math.min(inputTokens - cachedTokens, upTo(inputTokens));
    const reasoningTokens = Math.min(outputTokens, upTo(outputTokens));
    return {
      inputTokens,
      outputTokens,
      cachedTokens,
      cacheWriteTokens,
      reasoningTokens,
      serviceTier: this.#tier(),
    };
  }

  #tier(): string {
    switch (this.#scenario.serviceTier) {
      case 'flex':
        return this.#pick(['flex', 'flex', 'default']);
      case 'auto':
        return this.#pick(['default', 'priority', 'flex']);
      case 'priority':
        return this.#pick(['priority', 'default']);
      default:
        return this.#pick(['default', 'default', 'flex']);
    }
  }

  #pick<Value>(values: readonly Value[]): Value {
    const value = values[Math.floor(this.#random() * values.length)];
    if (value === undefined) throw new Error('nothing to pick from');
    return value;
  }
}

const PACING = { maxAttempts: 3, guard: false, timeoutMs: 5_000, graceMs: 1_000 };

async function drained(of: Scenario) {
  const clock = new FakeClock();
  const server = new BillingServer(of, clock);
  const price: ModelPrice = {
    model: 'm',
    table: { source: 'test', date: null },
    tiers: {
      standard: rateTable(of.standard),
      flex: rateTable(halved(of.standard)),
      priority: rateTable(of.priority),
      batch: null,
    },
    contextWindowTokens: null,
    maxOutputTokens: null,
  };
  let most = 0;
  const lane: Lane = {
    name: 'lane',
    weight: 1,
    provider: server,
    limiter: createLimiter({ requestsPerMinute: null, tokensPerMinute: null, random: () => 0.5 }),
    costOf: (_model, usage) => billedMicroUsd(usage, price),
    mostOf(_model, inputTokens, outputCap, serviceTier) {
      const parts = of.outputCap === 0 ? 1 : (outputCap ?? 0) / of.outputCap;
      server.inputBound = inputTokens / parts;
      const mostOfCall = worstCaseAtTier(inputTokens, outputCap, serviceTier, price) ?? Number.NaN;
      most = mostOfCall / parts;
      return mostOfCall;
    },
  };
  // Documents of one length, so that each has the same worst case.
  const texts = Array.from(
    { length: of.documents },
    (_, index) => `Document ${String(index).padStart(3, '0')}`,
  );
  const dearest = { input: 0, output: 0 };
  for (const { input, cachedInput, cacheWrite, output, reasoning } of [of.standard, of.priority]) {
    dearest.input = Math.max(dearest.input, input, cachedInput, cacheWrite);
    dearest.output = Math.max(dearest.output, output, reasoning);
  }
  const cap = Math.floor(of.callsWorth * (160 * dearest.input + of.outputCap * dearest.output));
  const asked = of.serviceTier === 'none' ? {} : { service_tier: of.serviceTier };
  const run = await StoredRun.of(
    texts,
    { ...PACING, concurrency: of.concurrency, groupUrl: of.groupUrl, groupMax: of.groupMax },
    clock,
    { maxCostMicroUsd: cap, maxTokensTotal: null, maxFailures: null },
    { ...CAPS[of.endpoint]?.(of.outputCap), ...asked },
    of.endpoint,
  );
  const brake = (drain: SendingWay): void => {
    if (of.stop.kind === 'stop') clock.after(of.stop.afterMs, () => drain.stop());
    if (of.stop.kind === 'abort') clock.after(of.stop.afterMs, () => drain.abort());
  };
  try {
    const report = await run.executeOver([lane], seededRandom(of.seed), brake);
    if (report.end.reason !== 'stopped') return { ...report, wasStopped: false, server, cap, most };
    const rest = await run.executeOver([lane], seededRandom(of.seed + 1));
    return { ...rest, wasStopped: true, server, cap, most };
  } finally {
    await run.remove();
  }
}

describe('a run under --max-cost', () => {
  it('is never billed more, stopped and resumed or not, and ends only when no call would fit', async () => {
    const ends = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(scenario, async (of) => {
        const { end, wasStopped, summary, server, cap, most } = await drained(of);
        for (const each of [end.reason, wasStopped ? 'stopped' : 'in one go'])
          ends.set(each, (ends.get(each) ?? 0) + 1);
        expect(server.billed).toBeLessThanOrEqual(cap);
        expect(summary.costMicroUsd).toBe(server.told);
        expect(summary.inDoubt.costMicroUsd).toBe(server.untold * most);
        const { counts } = summary;
        if (end.reason === 'limit_reached') {
          expect(server.told + server.untold * most + of.groupMax * most).toBeGreaterThan(cap);
          expect(counts.ready + counts.delayed).toBeGreaterThan(0);
        } else {
          expect(end.reason).toBe('drained');
          expect(counts.completed + counts.failed).toBe(of.documents);
        }
      }),
      // A failure is made small for as long as there is time to tell it.
      { numRuns: 200, interruptAfterTimeLimit: 800_000, markInterruptAsFailure: true },
    );
    // All ways to end were met often enough to say something.
    for (const reason of ['limit_reached', 'drained', 'stopped']) {
      expect(ends.get(reason) ?? 0, reason).toBeGreaterThan(20);
    }
  }, 900_000);
});
