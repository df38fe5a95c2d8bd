/**
 * One settled task as a line of a Batch API output file (OpenAI API reference, "The request output object"), for
 * tools that read such files already. An answer has the server's body as it came. What a server answered with an error
 * status keeps that status and an error body; what never became such an answer has `response: null` and an `error` whose
 * code is our kind.
 */
import type { ResultRow } from '../core/result-row.js';
import { bodyOf } from '../endpoints/endpoints.js';
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
    `,"body":${row.result.responseJson ?? bodyOf(row.result, row.usage)}},"error":null`
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
