/**
 * POST /v1/embeddings: a vector for each input, made of the input's hash, so that a test can tell whose a vector is.
 * Tokens by the simulator's rule of thumb: four UTF-8 bytes of a text each, rounded up, or as many as were sent as such.
 */
import { createHash } from 'node:crypto';
import type { Json, JsonObject } from '../core/json.js';
import { costMember, costUsdOf } from './chat-completions.js';
import type { AnswerStamp, AnswerVariant, Endpoint, Inquiry } from './endpoint.js';
import { type Input, inputsOf, inquireInputs, listWithFault, tokensOf } from './inputs.js';
import type { SimulatorSettings } from './options.js';
import { faultOfModel, invalidRequest, missingParameter, type Refusal, tooManyInputs } from './refusal.js';

/** As OpenAI's API reference has them. */
const MOST_INPUTS = 2_048;
const MOST_TOKENS_OF_INPUT = 8_192;
const MOST_TOKENS = 300_000;
/** Where the request names none. Shorter than real ones, which would make a rehearsal wait for its own answers. */
const DEFAULT_LENGTH = 32;

export const embeddings: Endpoint = {
  path: '/v1/embeddings',
  read(requestBody, settings) {
    return faultOfModel(requestBody) ?? faultOf(requestBody) ?? understand(requestBody, settings);
  },
};

/** The vector that the simulator gives to a text, or to tokens. */
export function simulatedVector(input: Input | readonly number[], length: number = DEFAULT_LENGTH): number[] {
  const vector: number[] = [];
  for (let block = 0; vector.length < length; block += 1) {
    const hash = createHash('sha256').update(JSON.stringify(input)).update(String(block)).digest();
    for (let at = 0; at + 4 <= hash.length && vector.length < length; at += 4) {
      vector.push(Math.round((hash.readUInt32BE(at) / 2 ** 31 - 1) * 1e6) / 1e6);
    }
  }
  return vector;
}

function faultOf({ input, dimensions, encoding_format: format = 'float' }: JsonObject): Refusal | null {
  if (input === undefined) return missingParameter('input');
  const inputs = inputsOf(input);
  if (inputs === null || inputs.length === 0 || inputs.some(isUnfit)) {
    return invalidRequest("'$.input' is invalid. Please check the API reference.", 'input', null);
  }
  if (inputs.length > MOST_INPUTS) return tooManyInputs(MOST_INPUTS, inputs.length);
  const tokens = inputs.map(tokensOf);
  const longest = Math.max(...tokens);
  if (longest > MOST_TOKENS_OF_INPUT) {
    const message = `This model's maximum context length is ${MOST_TOKENS_OF_INPUT} tokens, however you requested ${longest} tokens.`;
    return invalidRequest(message, 'input', 'context_length_exceeded');
  }
  const all = tokens.reduce((sum, each) => sum + each, 0);
  if (all > MOST_TOKENS) {
    const message = `Requested ${all} tokens, max ${MOST_TOKENS} tokens per request.`;
    return invalidRequest(message, 'input', 'max_tokens_per_request');
  }
  if (dimensions !== undefined && !(Number.isInteger(dimensions) && Number(dimensions) >= 1)) {
    return invalidRequest("Invalid value for 'dimensions'.", 'dimensions', 'invalid_value');
  }
  if (format === 'float') return null;
  const message = "The simulator gives vectors as 'float' alone.";
  return invalidRequest(message, 'encoding_format', 'unsupported_value');
}

function isUnfit(input: Input): boolean {
  return input.length === 0 || typeof input[0] === 'object';
}

function understand(requestBody: JsonObject, { prices }: SimulatorSettings): Inquiry {
  const { inputs, lead, promptTokens, ...asked } = inquireInputs(requestBody['input'] ?? null);
  const length = typeof requestBody['dimensions'] === 'number' ? requestBody['dimensions'] : DEFAULT_LENGTH;
  const model = String(requestBody['model']);
  const costUsd = costUsdOf({ promptTokens, completionTokens: 0 }, prices);
  return {
    ...asked,
    model,
    promptTokens,
    completionTokens: 0,
    outputCapTokens: null,
    costUsd,
    render: (variant, stamp) => ({
      object: 'list',
      data: dataOf(inputs, length, lead, variant, stamp),
      model: `simulated/${model}`,
      ...(variant !== 'without_usage' && {
        usage: { prompt_tokens: promptTokens, total_tokens: promptTokens, ...costMember(costUsd) },
      }),
    }),
  };
}

/** @param lead the input that a fault is meant for */
function dataOf(
  inputs: readonly Input[],
  length: number,
  lead: number,
  variant: AnswerVariant,
  { callNumber }: AnswerStamp,
): Json[] {
  const vectorOf = (input: Input, isMeant: boolean): number[] => {
    if (isMeant && variant === 'half') return simulatedVector('short', Math.ceil(length / 2));
    return isMeant && EMPTIED.includes(variant) ? [] : simulatedVector(input, length);
  };
  const data = inputs.map((input, index): JsonObject => {
    return { object: 'embedding', index, embedding: vectorOf(input, index === lead) };
  });
  return listWithFault(data, lead, variant, callNumber, { embedding: simulatedVector('another', length) });
}

const EMPTIED: readonly AnswerVariant[] = ['without_content', 'filtered', 'refused'];
