/**
 * Tokens, money and time of an input before anything is spent: what a run of it would send, counted in full where it is
 * small and from a fair sample where it is large. Nothing is stored and nobody is called.
 */
import { nextTurn } from '../../core/clock.js';
import { usageError } from '../../core/errors.js';
import type { JsonObject } from '../../core/json.js';
import { DistinctTexts, hash53 } from '../../documents/distinct-texts.js';
import { createStoredRequestReader } from '../../documents/read.js';
import { ENDPOINTS } from '../../endpoints/endpoints.js';
import type { RenderedRequest } from '../../endpoints/rendered-request.js';
import type { BadLine } from '../../input/bad-line.js';
import type { PriceTable } from '../../pricing/price-book.js';
import type { InputReading } from '../read-documents.js';
import { type LaneSettings, lanesOf, OPENAI_BASE_URL } from '../run-settings.js';
import { DocumentSample, SAMPLE_BOUNDS, type SampleBounds } from './document-sample.js';
import { type ModelEstimate, ModelTally } from './model-estimate.js';
import type { TokenRange } from './output-assumption.js';
import {
  ASSUMED_LATENCY,
  type Latency,
  type PaceLimits,
  type RunDuration,
  runDuration,
} from './run-duration.js';
import type { Population } from './total-estimator.js';

export interface EstimateOptions extends InputReading {
  /** Several to compare, each for all documents; one or none: what each document names goes first. */
  readonly models: readonly string[];
  /** Count every document, however many there are. */
  readonly exact: boolean;
  readonly outputTokens: TokenRange | null;
  /** Null: assumed to grow with the answer. */
  readonly latencyMs: number | null;
  readonly dailyDocuments: number | null;
  readonly sampleBounds?: SampleBounds;
}

export interface DurationRange {
  /** At the short and the long end of the assumed output. */
  readonly low: RunDuration;
  readonly high: RunDuration;
}

export interface PlannedModel extends ModelEstimate {
  readonly duration: DurationRange;
  /** Of a day's documents; null where no daily load was given. */
  readonly dailyDuration: DurationRange | null;
}

export interface EstimateReport {
  readonly documents: number;
  /** Not in the estimate; they would stop a run. */
  readonly badLines: number;
  /** Null where there is none. */
  readonly firstBadLine: BadLine | null;
  /** Documents whose id or content occurred before; they are in the estimate, but for those that share an answer. */
  readonly duplicates: number;
  /** Documents that `--dedupe` gives the answer of an equal one; null without it. They cost nothing. */
  readonly sharedAnswers: number | null;
  /** Documents that were counted, if not all. */
  readonly sampled: number | null;
  readonly firstRequest: { readonly line: number; readonly bodyJson: string };
  readonly models: readonly PlannedModel[];
  readonly limits: PaceLimits;
  /** True for `--concurrency auto`, for which a number is assumed. */
  readonly assumesConcurrency: boolean;
  readonly latency: Latency;
  readonly assumesLatency: boolean;
  readonly dailyDocuments: number | null;
  /** `--max-cost` of the run; null: no cap. */
  readonly maxCostMicroUsd: number | null;
  readonly simulated: boolean;
  readonly prices: PriceTable;
}

/** Where `auto` begins, and what a server bears as a rule. */
const ASSUMED_CONCURRENCY = 16;

/** @throws LlmBatchError (exit 2) as reading throws it, and for an input without a good line */
export async function estimateInput(options: EstimateOptions): Promise<EstimateReport> {
  const { settings, signal } = options;
  const render = createStoredRequestReader(settings.request);
  const tallies = openTallies(options);
  const sample = new DocumentSample(options.sampleBounds ?? SAMPLE_BOUNDS);
  const seen = { documents: 0, called: 0, bytes: 0, badLines: 0, duplicates: 0 };
  const requests = settings.sharing.dedupe ? new DistinctTexts() : null;
  let firstBadLine: BadLine | null = null;
  let firstRequest: EstimateReport['firstRequest'] | null = null;

  /** Of a document that was sampled, of which no more than its text is kept. */
  const requestOf = (body: string): RenderedRequest => {
    const request = render(body);
    if ('reason' in request) throw changedMeanwhile(request.reason);
    return request;
  };
  const count = async (request: RenderedRequest, bytes: number): Promise<void> => {
    for (const tally of tallies) await tally.add(request, bytes);
  };

  for await (const page of options.pages) {
    if (signal.aborted) break;
    seen.badLines += page.bad.length;
    seen.duplicates += page.duplicates;
    firstBadLine ??= page.bad[0] ?? null;
    for (const { line, body, requestHash, request } of page.documents) {
      firstRequest ??= { line, bodyJson: asSent(request, options) };
      seen.documents += 1;
      if (requests !== null && requests.numberOf(hash53(requestHash)) < seen.called) continue;
      seen.called += 1;
      if (options.exact) {
        const bytes = Buffer.byteLength(body);
        seen.bytes += bytes;
        await count(request, bytes);
        await breathe(seen.called);
      } else sample.offer(body);
    }
  }
  if (firstRequest === null) throw withoutDocuments(firstBadLine, seen.badLines);

  let sampled: number | null = null;
  if (!options.exact) {
    let counted = 0;
    for (const { body, bytes } of sample.documents()) {
      if (signal.aborted) break;
      await count(requestOf(body), bytes);
      counted += 1;
      await breathe(counted);
    }
    if (sample.size < seen.called) {
      sampled = sample.size;
      const longest = requestOf(sample.longest());
      for (const tally of tallies) await tally.addLongest(longest);
    }
  }
  const population = options.exact ? { documents: seen.called, bytes: seen.bytes } : sample.population;
  return {
    ...plan(
      options,
      tallies.map((tally) => tally.estimate(population)),
      population,
      seen.documents,
    ),
    documents: seen.documents,
    badLines: seen.badLines,
    firstBadLine,
    duplicates: seen.duplicates,
    sharedAnswers: requests === null ? null : seen.documents - seen.called,
    sampled,
    firstRequest,
  };
}

function asSent({ endpoint, bodyJson }: RenderedRequest, { models, settings }: EstimateOptions): string {
  const body = withModel(bodyJson, models);
  return (settings.remote.background ? ENDPOINTS[endpoint].inBackground?.(body) : null) ?? body;
}

/** Of several models to compare, the first. */
function withModel(bodyJson: string, models: readonly string[]): string {
  const [model, ...others] = models;
  if (model === undefined || others.length === 0) return bodyJson;
  return JSON.stringify({ ...(JSON.parse(bodyJson) as JsonObject), model });
}

function openTallies({ settings, models, prices, nowMs, outputTokens }: EstimateOptions): ModelTally[] {
  const baseUrl = lanesOf(settings)[0]?.baseUrl ?? OPENAI_BASE_URL;
  const simulated = settings.simulator !== null;
  const asked = models.length > 1 ? [...new Set(models)] : [null];
  return asked.map(
    (model) =>
      new ModelTally({
        asked: model,
        prices,
        // A rehearsal is priced as the run that it rehearses.
        query: { baseUrl: simulated ? OPENAI_BASE_URL : baseUrl, nowMs },
        givenOutput: outputTokens,
        simulated,
      }),
  );
}

/** @param population those that are called; of `documents`, which may share answers */
function plan(
  options: EstimateOptions,
  estimates: readonly ModelEstimate[],
  population: Population,
  documents: number,
) {
  const { settings, latencyMs, dailyDocuments, prices } = options;
  const { concurrency } = settings.pacing;
  const limits = limitsOf(lanesOf(settings), concurrency === 'auto' ? ASSUMED_CONCURRENCY : concurrency);
  const latency = latencyMs === null ? ASSUMED_LATENCY : { baseMs: latencyMs, msPerOutputToken: 0 };
  const durationOf = (estimate: ModelEstimate, share: number): DurationRange => {
    // There any request shares a call; those that take files of this machine are few.
    const groupedShare = settings.pacing.groupUrl === null ? estimate.groupedShare : 1;
    const callsADocument = 1 - groupedShare + groupedShare / settings.pacing.groupMax;
    const calls = Math.ceil(population.documents * share * callsADocument);
    const end = (outputTokens: number): RunDuration =>
      runDuration(
        { calls, inputTokens: estimate.input.total * share, outputTokens: outputTokens * share },
        limits,
        latency,
      );
    return { low: end(estimate.output.low.total), high: end(estimate.output.high.total) };
  };
  return {
    models: estimates.map((estimate) => ({
      ...estimate,
      duration: durationOf(estimate, 1),
      dailyDuration: dailyDocuments === null ? null : durationOf(estimate, dailyDocuments / documents),
    })),
    limits,
    assumesConcurrency: concurrency === 'auto',
    latency,
    assumesLatency: latencyMs === null,
    dailyDocuments,
    maxCostMicroUsd: settings.budget.maxCostMicroUsd,
    simulated: settings.simulator !== null,
    prices: { source: prices.source, date: prices.date },
  };
}

/** A lane without a limit makes the whole without one. */
function limitsOf(lanes: readonly LaneSettings[], concurrency: number): PaceLimits {
  const sum = (limits: readonly (number | null)[]): number | null =>
    limits.reduce((total, limit) => (total === null || limit === null ? null : total + limit), 0);
  return {
    requestsPerMinute: sum(lanes.map(({ rpm }) => rpm)),
    tokensPerMinute: sum(lanes.map(({ tpm }) => tpm)),
    requestsPerDay: sum(lanes.map(({ rpd }) => rpd)),
    concurrency,
  };
}

/** Counting is work without a pause; Ctrl-C and the progress line need one now and then. */
async function breathe(documents: number): Promise<void> {
  if (documents % 100 === 0) await nextTurn();
}

/** What was good when it was read: only a file that it names can have changed since. */
function changedMeanwhile(reason: string): Error {
  return usageError(
    'INPUT_CHANGED',
    `A document could be sent when it was read and no more when it was counted: ${reason}.`,
    'Estimate again once nothing changes the files.',
  );
}

function withoutDocuments(firstBadLine: BadLine | null, badLines: number): Error {
  const found =
    firstBadLine === null
      ? ''
      : ` Line ${firstBadLine.line} is bad: ${firstBadLine.reason}${badLines > 1 ? `; so are ${badLines - 1} more` : ''}.`;
  return usageError(
    'INPUT_EMPTY',
    `The input holds no document that could be sent.${found}`,
    '`llm-batch check` lists what is wrong with it',
  );
}
