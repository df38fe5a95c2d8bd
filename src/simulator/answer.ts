/**
 * What a simulated model says: a pure function of the request, with a fingerprint of the document in the
 * text, so that a swapped, stale or invented answer shows.
 *
 * Tokens by a rule of thumb of the simulator's own: a token is four UTF-8 bytes of text, rounded up per text;
 * every message costs 3 more and the reply 3; an image costs 85, a file 1,000; tools and a response format cost their
 * JSON.
 */
import { createHash } from 'node:crypto';
import { isJsonObject, type Json, type JsonObject } from '../core/json.js';
import { DEFAULT_OUTPUT_TOKENS, DEFAULT_SEED, type SimulatorOptions } from './options.js';
import { schemaInstance } from './schema-instance.js';
import { seededNumber } from './seeded.js';

export interface SimulatedAnswer {
  /** Of the messages, see `fingerprintOf`. */
  readonly fingerprint: string;
  readonly text: string;
  /** `simulated/` and the requested model. */
  readonly model: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

const BYTES_PER_TOKEN = 4;
const MESSAGE_TOKENS = 3;
const REPLY_TOKENS = 3;
const IMAGE_TOKENS = 85;
const FILE_TOKENS = 1_000;
/** As long as what the default length leaves for it. */
const FILLER = ' No model ever read this document.';

/**
 * The answer to a chat completion request, without any network: what a server with these options says when
 * no directive, fault or limit comes between.
 * @param requestBody parsed; `messages` must be there
 */
export function simulatedAnswer(
  requestBody: JsonObject,
  options: Pick<SimulatorOptions, 'seed' | 'outputTokens'> = {},
): SimulatedAnswer {
  const fingerprint = fingerprintOf(requestBody['messages'] ?? null);
  const [range, seed] = [options.outputTokens ?? DEFAULT_OUTPUT_TOKENS, options.seed ?? DEFAULT_SEED];
  const drawn = seededNumber(range, seed, 'output_tokens', fingerprint, 0);
  const structured = structuredText(requestBody['response_format'], fingerprint);
  const length = structured === null ? drawn : textTokens(structured);
  const completionTokens = Math.min(length, outputCapOf(requestBody) ?? length);
  return {
    fingerprint,
    text: structured ?? answerText(fingerprint, completionTokens),
    model: `simulated/${String(requestBody['model'])}`,
    promptTokens: promptTokensOf(requestBody),
    completionTokens,
  };
}

/** The request's own cap on its answer in tokens; null without one. */
export function outputCapOf(requestBody: JsonObject): number | null {
  for (const name of ['max_completion_tokens', 'max_tokens']) {
    const cap = requestBody[name];
    if (typeof cap === 'number' && cap >= 1) return Math.floor(cap);
  }
  return null;
}

/** The texts of one message, whether its content is a string or a list of parts. */
export function textsOf(message: Json): string[] {
  if (!isJsonObject(message)) return [];
  const { content } = message;
  if (typeof content === 'string') return [content];
  if (!Array.isArray(content)) return [];
  return content.flatMap((part) =>
    isJsonObject(part) && typeof part['text'] === 'string' ? [part['text']] : [],
  );
}

export function textTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}

/** Identifies what is asked: the first 12 hexadecimal digits of the SHA-256 of it as JSON. */
export function fingerprintOf(asked: Json): string {
  return createHash('sha256').update(JSON.stringify(asked)).digest('hex').slice(0, 12);
}

function promptTokensOf(requestBody: JsonObject): number {
  let tokens = REPLY_TOKENS;
  const { messages } = requestBody;
  for (const message of Array.isArray(messages) ? messages : []) {
    tokens += MESSAGE_TOKENS;
    for (const text of textsOf(message)) tokens += textTokens(text);
    tokens += IMAGE_TOKENS * partsIn(message, 'image_url') + FILE_TOKENS * partsIn(message, 'file');
  }
  for (const name of ['tools', 'response_format']) {
    const extra = requestBody[name];
    if (extra !== undefined && extra !== null) tokens += textTokens(JSON.stringify(extra));
  }
  return tokens;
}

function partsIn(message: Json, type: 'image_url' | 'file'): number {
  if (!isJsonObject(message) || !Array.isArray(message['content'])) return 0;
  return message['content'].filter((part) => isJsonObject(part) && part['type'] === type).length;
}

/** What structured output asks for: a value that fits the schema, or any object. Null when it asks for none. */
function structuredText(format: Json | undefined, fingerprint: string): string | null {
  if (!isJsonObject(format)) return null;
  if (format['type'] === 'json_object') return JSON.stringify({ simulated: fingerprint });
  const described = format['json_schema'];
  if (format['type'] !== 'json_schema' || !isJsonObject(described)) return null;
  return JSON.stringify(schemaInstance(described['schema'] ?? {}, fingerprint));
}

/** Four ASCII characters for each token; the fingerprint stands in full however short the answer. */
function answerText(fingerprint: string, tokens: number): string {
  const start = `Simulated answer ${fingerprint}.`;
  const missing = tokens * BYTES_PER_TOKEN - start.length;
  if (missing <= 0) return start;
  const filler = FILLER.repeat(Math.ceil(missing / FILLER.length)).slice(0, missing - 1);
  return `${start}${filler}.`;
}
