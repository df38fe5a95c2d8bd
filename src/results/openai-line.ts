/**
 * One settled task as a line of a Batch API output file (OpenAI API reference, "The request output object"), for
 * tools that read such files already. What a server answered with an error status keeps that status and an
 * error body; what never became such an answer has `response: null` and an `error` whose code is our kind.
 */
import type { ResultRow } from '../store/store.js';
import { type CompletedRow, type FailedRow, oneLine, settledRow } from './result-line.js';

/**
 * The line without its newline. Ids are made from the task, so that writing twice gives the same file. A parsed
 * output (structured answers) is written as its JSON text, because `content` is a string there.
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
  const { result } = row;
  const content = result.outputJson.startsWith('"') ? result.outputJson : JSON.stringify(result.outputJson);
  return (
    `,"response":{"status_code":200,"request_id":${JSON.stringify(row.requestId)},"body":` +
    `{"id":"chatcmpl-${row.taskId}","object":"chat.completion","created":${Math.floor(row.settledAtMs / 1000)}` +
    `,"model":${JSON.stringify(result.model)},"choices":[{"index":0,"message":{"role":"assistant"` +
    `,"content":${content},"refusal":null},"logprobs":null` +
    `,"finish_reason":${JSON.stringify(result.finishReason)}}]${usageField(row)}}},"error":null`
  );
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
