/** What a server says of a batch, in this program's words, whichever of the dialects it speaks. */

import type { ProviderFailure } from '../../core/failure.js';
import { isJsonObject, type Json, type JsonObject } from '../../core/json.js';
import { REMOTE_BATCH_STATES, type RemoteBatch, type RemoteBatchState } from '../remote-batches.js';
import { classifyErrorUnderOk, type FailureContext } from './classify.js';
import { errorObjectOf } from './error-body.js';
import { codesOf, messageOf } from './refusal-kind.js';

const QUEUE_FULL_CODE = 'token_limit_exceeded';
/** OpenAI's sentence, for servers that leave out the code. */
const QUEUE_FULL = /\benqueued token limit\b/i;
const SECONDS_END = 1e11;
const NO_HEADERS = { get: () => null };

/** Ids become parts of addresses: what could lead elsewhere is none. */
const ID = /^(?!\.+$)[\w.:~@+=-]{1,256}$/;

/** @returns null where the id is missing or cannot be one */
export function readId({ id }: JsonObject): string | null {
  return idOf(id);
}

/** @returns null where a batch or one of its files has no usable id */
export function readBatch(body: JsonObject, context: FailureContext): RemoteBatch | null {
  const id = readId(body);
  const { status, metadata, output_file_id: output, error_file_id: error } = body;
  const [outputFileId, errorFileId] = [idOf(output), idOf(error)];
  if (id === null || isUnusable(output, outputFileId) || isUnusable(error, errorFileId)) return null;
  const state = stateOf(String(status));
  const errors = state === 'failed' ? errorsOf(body) : [];
  return {
    id,
    state,
    createdAtMs: timeOf(body['created_at']),
    metadata: metadataOf(metadata),
    outputFileId,
    errorFileId,
    counts: countsOf(body['request_counts']),
    failure: failureOf(errors, context),
    isQueueFull: errors.some(isQueueFull),
  };
}

/** Together writes them in capitals, others with one `l`. */
function stateOf(status: string): RemoteBatchState {
  const word = status.toLowerCase().replace(/^cancel(?=ing|ed)/, 'cancell');
  return REMOTE_BATCH_STATES.find((state) => state === word) ?? 'unknown';
}

function idOf(value: Json | undefined): string | null {
  return typeof value === 'string' && ID.test(value) ? value : null;
}

/** Named, but by no id. An empty name is no name: some servers write one for null. */
function isUnusable(value: Json | undefined, id: string | null): boolean {
  return id === null && value !== undefined && value !== null && value !== '';
}

/** Seconds since the epoch, or a date as Together writes it. */
function timeOf(value: Json | undefined): number | null {
  const ms =
    typeof value === 'number'
      ? value * (value < SECONDS_END ? 1_000 : 1)
      : typeof value === 'string'
        ? Date.parse(value)
        : Number.NaN;
  return Number.isFinite(ms) ? ms : null;
}

function metadataOf(value: Json | undefined): Record<string, string> {
  if (!isJsonObject(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter((pair): pair is [string, string] => typeof pair[1] === 'string'),
  );
}

function countsOf(value: Json | undefined): RemoteBatch['counts'] {
  if (!isJsonObject(value)) return null;
  const { total, completed, failed = 0 } = value;
  return isCount(total) && isCount(completed) && isCount(failed) ? { total, completed, failed } : null;
}

function isCount(value: Json | undefined): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** `errors.data`, Groq's bare list, or Together's one `error`. */
function errorsOf({ errors, error }: JsonObject): JsonObject[] {
  const list = isJsonObject(errors) && Array.isArray(errors['data']) ? errors['data'] : errors;
  const found = Array.isArray(list) ? list : [list ?? error ?? null];
  return found.map((each) => errorObjectOf(each as Json)).filter((each) => Object.keys(each).length > 0);
}

function isQueueFull(error: JsonObject): boolean {
  return codesOf(error).includes(QUEUE_FULL_CODE) || QUEUE_FULL.test(messageOf(error));
}

function failureOf(errors: readonly JsonObject[], context: FailureContext): ProviderFailure | null {
  const [first] = errors;
  if (first === undefined) return null;
  const line = typeof first['line'] === 'number' ? `Line ${first['line']}: ` : '';
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  const message = `${line}${messageOf(first) || String(first['code'] ?? 'no reason is given')}${more}`;
  const error = { ...first, message };
  const failure = classifyErrorUnderOk({ status: 200, headers: NO_HEADERS, error }, context);
  if (isQueueFull(first)) return { ...failure, kind: 'rate_limited' };
  // A code that is unknown says that the file is wrong, not that an answer is.
  return failure.kind === 'bad_output' ? { ...failure, kind: 'invalid_request' } : failure;
}
