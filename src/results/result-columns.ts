/** Results as the columns of a table, whatever file the table is in. */
import { memberText } from '../core/json-text.js';
import type { TaskRow } from '../core/result-row.js';
import type { TaskState } from '../core/task.js';

export interface ResultColumn {
  readonly name: string;
  /** `output`: text, or a vector; `money`: micro-dollars; `time`: milliseconds since 1970. */
  readonly kind: 'text' | 'output' | 'integer' | 'money' | 'time';
  readonly read: (row: TaskRow) => string | number | null;
}

/** In this order, and only ever added to at the end. Completed and failed documents have the same columns. */
export const RESULT_COLUMNS: readonly ResultColumn[] = [
  { name: 'id', kind: 'text', read: (row) => row.key },
  { name: 'line', kind: 'integer', read: (row) => row.line },
  { name: 'status', kind: 'text', read: (row) => row.state },
  { name: 'output', kind: 'output', read: outputText },
  { name: 'model', kind: 'text', read: (row) => row.result?.model ?? null },
  { name: 'finish_reason', kind: 'text', read: (row) => row.result?.finishReason || null },
  { name: 'input_tokens', kind: 'integer', read: (row) => row.usage?.inputTokens ?? null },
  { name: 'output_tokens', kind: 'integer', read: (row) => row.usage?.outputTokens ?? null },
  { name: 'cached_tokens', kind: 'integer', read: (row) => row.usage?.cachedTokens ?? null },
  { name: 'reasoning_tokens', kind: 'integer', read: (row) => row.usage?.reasoningTokens ?? null },
  { name: 'cost_usd', kind: 'money', read: (row) => row.costMicroUsd },
  { name: 'attempts', kind: 'integer', read: (row) => row.attempts },
  {
    name: 'latency_ms',
    kind: 'integer',
    read: (row) => (row.latencyMs === null ? null : Math.round(row.latencyMs)),
  },
  { name: 'request_id', kind: 'text', read: (row) => row.error?.requestId ?? row.requestId },
  { name: 'finished_at', kind: 'time', read: (row) => row.settledAtMs },
  { name: 'error_kind', kind: 'text', read: (row) => row.error?.kind ?? null },
  { name: 'error_message', kind: 'text', read: (row) => row.error?.message ?? null },
  { name: 'http_status', kind: 'integer', read: (row) => row.error?.httpStatus ?? null },
  { name: 'error_code', kind: 'text', read: (row) => row.error?.code ?? null },
  {
    name: 'partial_output',
    kind: 'text',
    read: (row) => textOfJson(row.error?.partialOutputJson ?? null),
  },
  { name: 'metadata', kind: 'text', read: (row) => row.metadataJson },
  { name: 'shared_from', kind: 'text', read: (row) => row.sharedFrom },
  detailColumn('reasoning'),
  detailColumn('message'),
  detailColumn('logprobs'),
  detailColumn('choices'),
  detailColumn('items'),
];

/** What an answer holds beside its text: reasoning as text, the rest as JSON. */
function detailColumn(name: string): ResultColumn {
  return {
    name,
    kind: 'text',
    read: ({ result }) => textOfJson(memberText(result?.detailsJson ?? '', name)),
  };
}

/** Present when the input is included, and then the last. */
export const DOCUMENT_COLUMN: ResultColumn = { name: 'document', kind: 'text', read: (row) => row.body };

const ENDED: readonly TaskState[] = ['completed', 'failed', 'cancelled'];

/** What is added to the columns of an input. A document that has no answer yet is `pending`. */
export const ANSWER_COLUMNS: readonly ResultColumn[] = [
  ...columnsOf('output'),
  { name: 'status', kind: 'text', read: ({ state }) => (ENDED.includes(state) ? state : 'pending') },
  ...columnsOf('error_kind').map((column) => ({ ...column, name: 'error' })),
  ...columnsOf('error_message', 'finish_reason', 'model', 'input_tokens', 'output_tokens', 'cost_usd'),
];

/** In this order. */
function columnsOf(...names: readonly string[]): ResultColumn[] {
  return names.map((name) => {
    const found = RESULT_COLUMNS.find((column) => column.name === name);
    if (found === undefined) throw new RangeError(`there is no column ${name}`);
    return found;
  });
}

function outputText(row: TaskRow): string | null {
  return textOfJson(row.result?.outputJson ?? null);
}

/** Whether an output is a vector: numbers that nobody generated, so that there was no reason for them to end. */
export function isVector({ result }: TaskRow): boolean {
  return result !== null && result.finishReason === '' && /^\[\s*[-\d]/.test(result.outputJson);
}

/** A string is its text; objects, lists and vectors are their JSON text. */
function textOfJson(json: string | null): string | null {
  return json?.startsWith('"') ? (JSON.parse(json) as string) : json;
}

/** Each name, or `name_2`, `name_3`, … where others have taken it. They do not clash with each other either. */
export function freeNames(names: readonly string[], taken: Iterable<string>): string[] {
  const used = new Set(taken);
  return names.map((name) => {
    let free = name;
    for (let number = 2; used.has(free); number += 1) free = `${name}_${number}`;
    used.add(free);
    return free;
  });
}
