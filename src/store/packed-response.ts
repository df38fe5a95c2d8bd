/**
 * A server's body in few bytes. Most of a short answer's body says the same as every other, or as the columns beside it:
 * it is deflated with both as its dictionary, which makes 80 bytes of 600, and no long text stands in the store twice.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';

/** The columns of the same row that a body repeats, as they are stored. */
export interface BesideResponse {
  readonly model: string;
  readonly outputJson: string;
  readonly detailsJson: string | null;
}

/** What bodies have in common. Never edited: what was packed with it could not be read any more. */
const COMMON =
  '"reasoning_content":"tool_calls":[{"index":0,"id":"call_","type":"function","function":{"name":"","arguments":"' +
  '"content_filter_results":{"hate":{"filtered":false,"severity":"safe"},"matched_stop":null,"stop_reason":null,' +
  '"prompt_logprobs":null,"timings":{"prompt_n":,"prompt_ms":,"provider":"","native_finish_reason":"stop","reasoning":null,' +
  '"queue_time":0.,"prompt_time":0.,"completion_time":0.,"total_time":0.,"x_groq":{"id":"req_' +
  '{"id":"chatcmpl-","object":"chat.completion","created":1,"model":"gpt-","choices":[{"index":0,"message":' +
  '{"role":"assistant","content":"","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],' +
  '"usage":{"prompt_tokens":,"completion_tokens":,"total_tokens":,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},' +
  '"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,' +
  '"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_"}';

/** zlib's bounds of its window, as powers of two. */
const SMALLEST_WINDOW = 9;
const LARGEST_WINDOW = 15;

/** @param responseJson well-formed text */
export function packResponse(responseJson: string, beside: BesideResponse): Buffer {
  const dictionary = dictionaryOf(beside);
  // A window as large as what is looked at: to clear a larger one takes longer than the work itself.
  const needed = Math.ceil(Math.log2(dictionary.length + Buffer.byteLength(responseJson)));
  const windowBits = Math.min(LARGEST_WINDOW, Math.max(SMALLEST_WINDOW, needed));
  // Room for what comes out: of the usual 16 KiB most would be thrown away.
  const chunkSize = 2 ** (windowBits - 1);
  return deflateRawSync(responseJson, { dictionary, windowBits, memLevel: windowBits - 7, chunkSize });
}

/** @param beside as it was when the response was packed */
export function unpackResponse(packed: Uint8Array, beside: BesideResponse): string {
  return inflateRawSync(packed, { dictionary: dictionaryOf(beside) }).toString('utf8');
}

function dictionaryOf({ model, outputJson, detailsJson }: BesideResponse): Buffer {
  return Buffer.from(`${outputJson}${detailsJson ?? ''}${model}${COMMON}`);
}
