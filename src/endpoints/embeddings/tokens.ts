/** The tokens of an embeddings request are those of its inputs, and nothing else. */
import type { Json, JsonObject } from '../../core/json.js';
import type { SimulatedTokens, TokenTally } from '../endpoint.js';
import { inputsOf } from './inputs.js';

export function countInputTokens(body: JsonObject, tally: TokenTally): void {
  for (const input of inputsOf(body['input'])) {
    if (Array.isArray(input)) tally.addTokens(input.length);
    else tally.addText(input);
  }
}

const BYTES_PER_TOKEN = 4;

/** Four bytes of UTF-8 a token, rounded up a text; tokens are counted as they are. */
export function countSimulatedTokens(body: JsonObject): SimulatedTokens {
  const tokens = inputsOf(body['input']).reduce<number>((sum, input) => sum + simulatedTokens(input), 0);
  return { tokens, exact: true, images: 0 };
}

function simulatedTokens(input: Json): number {
  if (Array.isArray(input)) return input.length;
  return typeof input === 'string' ? Math.ceil(Buffer.byteLength(input) / BYTES_PER_TOKEN) : 0;
}
