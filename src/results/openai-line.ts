/**
 * One settled task as a line of a Batch API output file (OpenAI API reference, "The request output object"), for
 * tools that read such files already. An answer has the server's body as it came. What a server answered with an error
 * status keeps that status and an error body; what never became such an answer has `response: null` and an `error` whose
 * code is our kind.
 */
import type { ResultRow } from '../core/result-row.js';
import { type CompletedRow, type FailedRow, oneLine, settledRow } from './result-line.js';

/**
 * The line without its newline. Its own `id` is made from the task, so that writing twice gives the same file;
 * `custom_id` is always text there.
 * @param row read with its response
 * @throws LlmBatchError RESULT_ROW_BROKEN
 */
export function openaiLine(row: ResultRow): string {
  const settled = settledRow(row);
  return oneLine(
    `{"id":"batch_req_${row.taskId}","custom_id":${JSON.stringify(row.key)}` +
      `${settled.state === 'completed' ? completedFields(settled) : failedFields(settled)}}`,
  );
}

function completedFields(row: CompletedRow): string {
  return (
    `,"response":{"status_code":200,"request_id":${JSON.stringify(row.requestId)}` +
    `,"body":${row.result.responseJson ?? bodyOfOldAnswer(row)}},"error":null`
  );
}

/**
 * Stores of schema 1 and 2 have not kept bodies. What they have kept is put into the shape of one; what they have not
 * (`id`, `created`, `logprobs`, …) is left out rather than made up.
 */
function bodyOfOldAnswer(row: CompletedRow): string {
  const { outputJson, model, finishReason } = row.result;
  return (
    `{"object":"chat.completion","model":${JSON.stringify(model)},"choices":[{"index":0,"message":` +
    `{"role":"assistant",${messageMember(outputJson, finishReason)}},"finish_reason":${JSON.stringify(finishReason)}}]` +
    `${usageField(row)}}`
  );
}

/** Tool calls were kept as text in place of the content; a structured answer as what its text said. */
function messageMember(outputJson: string, finishReason: string): string {
  const text = outputJson.startsWith('"') ? (JSON.parse(outputJson) as string) : outputJson;
  const isCall = finishReason === 'tool_calls' || finishReason === 'function_call';
  return isCall && isJson(text) ? `"${finishReason}":${text}` : `"content":${JSON.stringify(text)}`;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function usageField(row: CompletedRow): string {
  const { usage } = row;
  if (usage === null) return '';
  return (
    `,"usage":{"prompt_tokens":${usage.inputTokens},"completion_tokens":${usage.outputTokens}` +
    `,"total_tokens":${usage.inputTokens + usage.outputTokens}` +
    `,"prompt_tokens_details":{"cached_tokens":${usage.cachedTokens}}` +
    `,"completion_tokens_details":{"reasoning_tokens":${usage.reasoningTokens}}}`
  );
}

function failedFields(row: FailedRow): string {
  const { error } = row;
  if (error.httpStatus !== null && error.httpStatus >= 400) {
    const body = { error: { message: error.message, type: error.kind, param: null, code: error.code } };
    return (
      `,"response":{"status_code":${error.httpStatus},"request_id":${JSON.stringify(error.requestId)}` +
      `,"body":${JSON.stringify(body)}},"error":null`
    );
  }
  // The Batch API has no place for half an answer; an added field breaks no reader and loses nothing.
  const partial = error.partialOutputJson === null ? '' : `,"partial_output":${error.partialOutputJson}`;
  return `,"response":null,"error":{"code":"${error.kind}","message":${JSON.stringify(error.message)}${partial}}`;
}
