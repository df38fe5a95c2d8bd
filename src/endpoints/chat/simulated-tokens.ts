/**
 * Tokens as the simulator bills them, for an estimate of a rehearsal: a token is four bytes of UTF-8, rounded up a
 * text; a message costs 3 more and the reply 3; an image is 85, a file 1,000, tools and a response format cost their JSON. Written
 * after that rule's description and not after its code, so that the two check each other.
 */
import { isJsonObject, type Json, type JsonObject } from '../../core/json.js';
import type { SimulatedTokens } from '../endpoint.js';

const BYTES_PER_TOKEN = 4;
const TOKENS_PER_MESSAGE = 3;
const TOKENS_OF_REPLY = 3;
const TOKENS_PER_IMAGE = 85;
const TOKENS_PER_FILE = 1_000;

export function countSimulatedTokens(body: JsonObject): SimulatedTokens {
  let tokens = TOKENS_OF_REPLY;
  let images = 0;
  let files = 0;
  const messages = body['messages'];
  for (const message of Array.isArray(messages) ? messages : []) {
    tokens += TOKENS_PER_MESSAGE;
    const content = isJsonObject(message) ? message['content'] : null;
    for (const part of Array.isArray(content) ? content : [content ?? null]) {
      if (isJsonObject(part) && part['type'] === 'image_url') images += 1;
      if (isJsonObject(part) && part['type'] === 'file') files += 1;
      tokens += tokensOf(isJsonObject(part) ? (part['text'] ?? null) : part);
    }
  }
  for (const name of ['tools', 'response_format']) {
    const value = body[name];
    if (value !== undefined && value !== null) tokens += tokensOf(JSON.stringify(value));
  }
  tokens += images * TOKENS_PER_IMAGE + files * TOKENS_PER_FILE;
  return { tokens, exact: images + files === 0, images };
}

function tokensOf(text: Json): number {
  return typeof text === 'string' ? Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN) : 0;
}
