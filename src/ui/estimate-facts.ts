/** What an estimate rests on, in words. */

import { printable } from '../core/foreign-text.js';
import type { EstimateReport, PlannedModel } from '../runs/estimate/estimate-input.js';
import { WAYS, type Way } from '../runs/estimate/model-estimate.js';
import {
  ASSUMED_OUTPUT,
  ASSUMED_OUTPUT_WITH_REASONING,
  assumedOutputOf,
  type TokenRange,
} from '../runs/estimate/output-assumption.js';
import type { EstimatedTotal } from '../runs/estimate/total-estimator.js';
import { dotted, type Fact, fact } from './facts.js';
import { formatCount, formatDuration, formatMoney, formatQuantity } from './numbers.js';
import { priceTableText } from './summary-facts.js';

export const WAY_HEADERS: Readonly<Record<Way, string>> = {
  direct: 'direct',
  flex: 'flex',
  batch: 'Batch API',
};

/** Ways of which no price is known with any model have no column. */
export function shownWays({ models }: EstimateReport): Way[] {
  return WAYS.filter((way) => way === 'direct' || models.some(({ cost }) => cost[way] !== null));
}

/** One model by its name, several that the documents name by their number. */
export function labelOf({ asked, models }: PlannedModel): string {
  if (asked !== null) return asked;
  const [first] = models;
  return models.length === 1 && first !== undefined ? first.model : formatQuantity(models.length, 'model');
}

export function estimateHeadline({ documents, sampled }: EstimateReport): string {
  const counted =
    sampled === null
      ? 'all counted'
      : `${formatCount(sampled)} of them counted, the totals are estimated from these`;
  return `${formatQuantity(documents, 'document')}, ${counted}`;
}

/** What keeps the estimate from being all that the user may take it for. */
export function estimateWarnings(report: EstimateReport): string[] {
  const { badLines, firstBadLine, models, maxCostMicroUsd } = report;
  const uncounted = models[0]?.uncountedParts ?? 0;
  const warnings = [
    firstBadLine &&
      `${formatQuantity(badLines, 'bad line')} would stop a run and ${badLines === 1 ? 'is' : 'are'} not in these figures; line ${formatCount(firstBadLine.line)}: ${printable(firstBadLine.reason)}`,
    repeatWarning(report),
    uncounted === 0
      ? null
      : `${formatQuantity(uncounted, 'part')} (audio, PDFs, other files) cannot be counted before they are sent`,
    ...models.map((model) => maxCostMicroUsd && budgetWarning(model, maxCostMicroUsd)),
  ];
  return warnings.filter((warning) => typeof warning === 'string');
}

function repeatWarning({ duplicates, sharedAnswers }: EstimateReport): string | null {
  if ((sharedAnswers ?? duplicates) === 0) return null;
  return sharedAnswers === null
    ? `${formatQuantity(duplicates, 'repeat')} of earlier documents would be sent and paid for too; not with --dedupe`
    : `${formatQuantity(sharedAnswers, 'document')} would take the answer of an equal one, for nothing`;
}

function budgetWarning(model: PlannedModel, maxCostMicroUsd: number): string | null {
  const { direct } = model.cost;
  const name = printable(labelOf(model));
  if (direct === null)
    return `--max-cost needs a price, and none is known for ${name}; --prices FILE can say it`;
  if (direct.high <= maxCostMicroUsd) return null;
  return `with ${name} this may cost up to ${formatMoney(direct.high)}: --max-cost ${formatMoney(maxCostMicroUsd)} may stop it early`;
}

export function estimateFacts(report: EstimateReport): Fact[] {
  const { models, sampled, simulated } = report;
  const first = models[0];
  if (first === undefined) return [];
  const isMixed = models.some((model) => model.models.length > 1);
  const rehearsal = 'a rehearsal costs nothing; these are the prices of the run it rehearses';
  return [
    fact('input', inputFact(first)),
    fact('output', outputFact(models)),
    ...(sampled === null ? [] : [fact('error', errorFact(models))]),
    fact('tokenizer', tokenizerFact(report)),
    ...(isMixed ? [fact('models', modelsFact(first, report))] : []),
    fact('time', timeFact(report)),
    ...fullDayFacts(report),
    fact('prices', pricesFact(report)),
    ...(simulated ? [fact('simulated', rehearsal)] : []),
  ];
}

function inputFact({ input, asked }: PlannedModel): string {
  const { p50, p95, max } = input.document;
  const total = `${formatQuantity(Math.round(input.total), 'token')}${asked === null ? '' : ` with ${printable(asked)}`}`;
  return dotted([
    total,
    `a document ${formatCount(p50)} (p50), ${formatCount(p95)} (p95), ${formatCount(max)} (max)`,
  ]);
}

function outputFact(models: readonly PlannedModel[]): string {
  const bases = new Set(models.flatMap(({ output }) => output.bases));
  return dotted([
    bases.has('given') ? 'as --output-tokens says, within the cap of each request' : null,
    bases.has('cap') ? 'at most what the requests themselves allow' : null,
    bases.has('none') ? 'none where nothing is generated' : null,
    bases.has('assumed') ? `assumed: ${assumedText(models)}; --output-tokens says it better` : null,
  ]);
}

/** `50 to 500 an answer, 300 to 3,000 with the reasoning of gpt-5-mini`. */
function assumedText(models: readonly PlannedModel[]): string {
  const names = [...new Set(models.flatMap((each) => each.models).map(({ model }) => model))];
  const reasoning = names.filter((name) => assumedOutputOf(name) !== ASSUMED_OUTPUT);
  const said = ({ low, high }: TokenRange): string => `${formatCount(low)} to ${formatCount(high)}`;
  return [
    ...(reasoning.length < names.length ? [`${said(ASSUMED_OUTPUT)} tokens an answer`] : []),
    ...(reasoning.length > 0
      ? [
          `${said(ASSUMED_OUTPUT_WITH_REASONING)} with the reasoning of ${reasoning.map(printable).join(', ')}`,
        ]
      : []),
  ].join(', ');
}

/** As 95 of 100 samples would have it. */
function errorFact(models: readonly PlannedModel[]): string {
  const worst = models.reduce((one, other) =>
    errorShare(other.input) > errorShare(one.input) ? other : one,
  );
  const { total, plusMinus } = worst.input;
  return `input ${formatCount(total - plusMinus)} to ${formatCount(total + plusMinus)} tokens (± ${percent(errorShare(worst.input))}) in 95 of 100 samples; --exact counts every document`;
}

function errorShare({ total, plusMinus }: EstimatedTotal): number {
  return total > 0 ? plusMinus / total : 0;
}

function percent(share: number): string {
  if (!Number.isFinite(share)) return 'unknown';
  return `${share < 0.1 ? (share * 100).toFixed(2) : (share * 100).toFixed(0)} %`;
}

function tokenizerFact({ models, simulated }: EstimateReport): string {
  if (simulated)
    return "the simulator's rule: a token is 4 bytes, a message 3 tokens more, the reply 3, an image 85, a file 1,000";
  const used = new Map<string, string[]>();
  const foreign: string[] = [];
  for (const { model, tokenizer, ownTokenizer } of models.flatMap((each) => each.models)) {
    used.set(tokenizer, [...(used.get(tokenizer) ?? []), model]);
    if (!ownTokenizer) foreign.push(model);
  }
  const estimated = models[0]?.estimatedDocuments ?? 0;
  return dotted([
    [...used.keys()].join(', '),
    foreign.length === 0
      ? null
      : `not the one of ${foreign.map(printable).join(', ')}, which is not known here: 10 to 30 % off is usual`,
    foreign.length > 0 || estimated === 0
      ? null
      : `${formatQuantity(estimated, 'document')} with tools, a schema or images, counted by rule`,
  ]);
}

const MOST_MODELS_SHOWN = 8;

function modelsFact({ models }: PlannedModel, { sampled }: EstimateReport): string {
  const shown = models
    .slice(0, MOST_MODELS_SHOWN)
    .map(({ model, counted }) => `${printable(model)} ${formatCount(counted)}`);
  const more = models.length > MOST_MODELS_SHOWN ? ` and ${models.length - MOST_MODELS_SHOWN} more` : '';
  return `${shown.join(', ')}${more}, ${sampled === null ? 'documents' : 'of the counted documents'}`;
}

function timeFact(report: EstimateReport): string {
  const { limits, latency, models } = report;
  const rates = dotted([
    limits.requestsPerMinute === null ? null : `${formatCount(limits.requestsPerMinute)} requests a minute`,
    limits.tokensPerMinute === null ? null : `${formatCount(limits.tokensPerMinute)} tokens a minute`,
    limits.requestsPerDay === null ? null : `${formatCount(limits.requestsPerDay)} requests a day`,
    `${formatCount(limits.concurrency)} calls open${report.assumesConcurrency ? ' (assumed)' : ''}`,
  ]);
  const calls = report.assumesLatency
    ? `a call is assumed to take ${formatDuration(latency.baseMs)} and ${latency.msPerOutputToken} ms a token of output (--latency says it better)`
    : `a call takes ${formatDuration(latency.baseMs)}`;
  const held = [
    ...new Set(models.flatMap(({ duration }) => [duration.low.heldBackBy, duration.high.heldBackBy])),
  ];
  const batch = models.some(({ cost }) => cost.batch !== null)
    ? '; the Batch API answers within 24 hours'
    : '';
  return `if no call fails: ${rates}; ${calls}; held back by ${held.map((by) => HELD_BACK_WORDS[by]).join(' or ')}${batch}`;
}

const HELD_BACK_WORDS = {
  requests: 'requests a minute',
  tokens: 'tokens a minute',
  requests_per_day: 'requests a day',
  concurrency: 'the number of open calls',
} as const;

const DAY_MS = 24 * 3_600_000;

function fullDayFacts({ models, dailyDocuments }: EstimateReport): Fact[] {
  if (dailyDocuments === null) return [];
  const late = models.filter(({ dailyDuration }) => (dailyDuration?.high.ms ?? 0) > DAY_MS).map(labelOf);
  if (late.length === 0) return [];
  const value = `${formatCount(dailyDocuments)} documents may take longer than a day under these limits with ${late.map(printable).join(', ')}`;
  return [fact('daily load', value)];
}

function pricesFact(report: EstimateReport): string {
  const { models, prices } = report;
  const named = models.flatMap((model) => model.models);
  const tables = new Map(
    named.flatMap(({ priceTable: table }) => (table === null ? [] : [[table.source, table.date] as const])),
  );
  const unpriced = named.filter(({ priceTable }) => priceTable === null);
  const unknown = unpriced.map(({ model }) => printable(model));
  if (tables.size === 0) tables.set(prices.source, prices.date);
  const sources = [...tables].map(([source, date]) => priceTableText({ source, date })).join(' + ');
  return dotted([
    sources,
    'no discount for cached input is assumed',
    tiersText(models),
    unpricedWaysText(report),
    unknown.length === 0
      ? null
      : `no price is known for ${[...new Set(unknown)].join(', ')}; --prices FILE can say it`,
  ]);
}

function tiersText(models: readonly PlannedModel[]): string | null {
  const tiers = [...new Set(models.flatMap(({ serviceTiers }) => serviceTiers))].map(printable);
  return tiers.length === 0 ? null : `direct at the service_tier that requests ask for: ${tiers.join(', ')}`;
}

/** Of models with a price: where there is none at all, that says it. */
function unpricedWaysText(report: EstimateReport): string | null {
  if (report.models.every(({ cost }) => cost.direct === null)) return null;
  const ways = WAYS.filter((way) => !shownWays(report).includes(way));
  return ways.length === 0
    ? null
    : `the price of ${ways.map((way) => WAY_HEADERS[way]).join(' and ')} is unknown`;
}
