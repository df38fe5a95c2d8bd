/** What is stored of how a request ended and of what became of its task, by the names of their columns, whatever the backend. */
import type { CallEnd, CallShare } from '../core/call.js';
import type { CompletedResult, TaskError, TaskOutcome } from '../core/outcome.js';
import type { TokenUsage } from '../core/usage.js';
import type { EndOfRequest } from './call-sums.js';
import { packResponse } from './packed-response.js';
import { storableCount, storableInteger, storableIntegerOrNull, storableTextOrNull } from './storable.js';

const USAGE = ['input_tokens', 'output_tokens', 'cached_tokens', 'reasoning_tokens'] as const;

/** Of `calls`. */
export const ENDING = ['http_status', 'kind', 'message', 'request_id', 'cost_micro_usd', ...USAGE] as const;

/** Of `results`, but for the server's packed body; what may be long comes last, as in the table. */
export const RESULT = [
  ...(['settled_at_ms', 'model', 'finish_reason', 'error_kind', 'error_message', 'error_code'] as const),
  ...(['http_status', 'request_id', 'latency_ms', 'cost_micro_usd', ...USAGE] as const),
  ...(['partial_output_json', 'output_json', 'details_json'] as const),
] as const;

type EndingColumn = (typeof ENDING)[number];
type SettledColumn = (typeof RESULT)[number];
export type OutcomeColumn = EndingColumn | SettledColumn;

type Columns<Name extends string> = Readonly<Record<Name, string | number | null>>;

export function endingColumns(call: EndOfRequest): Columns<EndingColumn> {
  return {
    http_status: storableIntegerOrNull(call.httpStatus),
    kind: call.kind,
    message: storableTextOrNull(call.message),
    request_id: storableTextOrNull(call.requestId),
    cost_micro_usd: call.costMicroUsd,
    ...usageColumns(call.usage),
  };
}

/** `latencyMs` is not known of a request that was worked off in a batch. */
export type EndOfCall = Pick<CallEnd, 'requestId'> & { readonly latencyMs?: number };

export interface StoredResult {
  readonly columns: Columns<SettledColumn>;
  readonly responsePacked: Buffer | null;
}

/** What a task that is settled has from here on; null for one that is not. */
export function resultOf(outcome: TaskOutcome, call: EndOfCall | null): StoredResult | null {
  switch (outcome.action) {
    case 'completed':
      return storedResult(outcome.atMs, call, outcome.share, outcome.result, null);
    case 'failed':
      return storedResult(outcome.atMs, call, outcome.share, null, outcome.error);
    case 'retry':
    case 'released':
      return null;
  }
}

/** Either an answer or an error. */
function storedResult(
  atMs: number,
  call: EndOfCall | null,
  share: CallShare | null,
  answer: CompletedResult | null,
  error: TaskError | null,
): StoredResult {
  const model = storableTextOrNull(answer?.model ?? null);
  const outputJson = storableTextOrNull(answer?.outputJson ?? null);
  const detailsJson = storableTextOrNull(answer?.detailsJson ?? null);
  const responseJson = storableTextOrNull(answer?.responseJson ?? null);
  return {
    columns: {
      settled_at_ms: storableInteger(atMs),
      model,
      finish_reason: storableTextOrNull(answer?.finishReason ?? null),
      error_kind: error?.kind ?? null,
      error_message: storableTextOrNull(error?.message ?? null),
      error_code: storableTextOrNull(error?.code ?? null),
      http_status: storableIntegerOrNull(error?.httpStatus ?? null),
      request_id: storableTextOrNull(call?.requestId ?? error?.requestId ?? null),
      latency_ms: call?.latencyMs ?? null,
      cost_micro_usd: share?.costMicroUsd ?? null,
      ...usageColumns(share?.usage ?? null),
      partial_output_json: storableTextOrNull(error?.partialOutputJson ?? null),
      output_json: outputJson,
      details_json: detailsJson,
    },
    responsePacked:
      outputJson === null || responseJson === null
        ? null
        : packResponse(responseJson, { model: model ?? '', outputJson, detailsJson }),
  };
}

function usageColumns(usage: TokenUsage | null): Columns<(typeof USAGE)[number]> {
  const count = (tokens: number | undefined) => (tokens === undefined ? null : storableCount(tokens));
  return {
    input_tokens: count(usage?.inputTokens),
    output_tokens: count(usage?.outputTokens),
    cached_tokens: count(usage?.cachedTokens),
    reasoning_tokens: count(usage?.reasoningTokens),
  };
}
