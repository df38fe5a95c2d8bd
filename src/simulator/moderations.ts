/** POST /v1/moderations: scores made of each input's hash; says nothing of tokens, for none are paid for. */
import { createHash } from 'node:crypto';
import type { Json, JsonObject } from '../core/json.js';
import type { AnswerVariant, Endpoint, Inquiry } from './endpoint.js';
import { type Input, inputsOf, inquireInputs } from './inputs.js';
import { invalidRequest, missingParameter, type Refusal, tooManyInputs } from './refusal.js';

const DEFAULT_MODEL = 'omni-moderation-latest';
const MOST_INPUTS = 32;
const CATEGORIES = ['harassment', 'hate', 'self-harm', 'sexual', 'violence'];
const FLAGGED_ABOVE = 0.9;

export const moderations: Endpoint = {
  path: '/v1/moderations',
  read(requestBody) {
    return faultOf(requestBody) ?? understand(requestBody);
  },
};

/** The result that the simulator gives to an input. */
export function simulatedModeration(input: Input): JsonObject {
  const scores = CATEGORIES.map((category): [string, number] => {
    const hash = createHash('sha256').update(category).update(JSON.stringify(input)).digest();
    return [category, Math.round((hash.readUInt32BE(0) / 2 ** 32) * 1e6) / 1e6];
  });
  const types = Array.isArray(input) ? ['text', 'image'] : ['text'];
  return {
    flagged: scores.some(([, score]) => score > FLAGGED_ABOVE),
    categories: Object.fromEntries(scores.map(([category, score]) => [category, score > FLAGGED_ABOVE])),
    category_scores: Object.fromEntries(scores),
    category_applied_input_types: Object.fromEntries(scores.map(([category]) => [category, types])),
  };
}

function faultOf({ input }: JsonObject): Refusal | null {
  if (input === undefined) return missingParameter('input');
  const inputs = inputsOf(input);
  if (inputs === null || inputs.length === 0 || inputs.some(isUnfit)) {
    return invalidRequest("Invalid type for 'input'.", 'input', 'invalid_type');
  }
  if (inputs.length > MOST_INPUTS) return tooManyInputs(MOST_INPUTS, inputs.length);
  const parts = inputs.flatMap((each) => (typeof each === 'string' ? [] : (each as JsonObject[])));
  const images = parts.filter(({ type }) => type === 'image_url');
  if (images.length <= 1) return null;
  const message = `Number of images (${images.length}) exceeds maximum of 1`;
  return invalidRequest(message, 'input', 'too_many_images');
}

/** Tokens are taken by no moderation. */
function isUnfit(input: Input): boolean {
  return input.length === 0 || typeof input[0] === 'number';
}

function understand(requestBody: JsonObject): Inquiry {
  const { inputs, lead, ...asked } = inquireInputs(requestBody['input'] ?? null);
  const model = String(requestBody['model'] ?? DEFAULT_MODEL);
  return {
    ...asked,
    model,
    completionTokens: 0,
    outputCapTokens: null,
    costUsd: 0,
    render: (variant, { callNumber }) => ({
      id: `modr-simulated-${callNumber}`,
      model: `simulated/${model}`,
      results: resultsOf(inputs, lead, variant),
    }),
  };
}

/** @param lead the input that a fault is meant for; results have no index, so that one too many or too few shifts all */
function resultsOf(inputs: readonly Input[], lead: number, variant: AnswerVariant): Json[] {
  const results: Json[] = inputs.map(simulatedModeration);
  const isMeant = (index: number): boolean => index === lead;
  switch (variant) {
    case 'without_choices':
      return [];
    case 'index_missing':
      return results.filter((_result, index) => !isMeant(index));
    case 'index_doubled':
      return [...results, simulatedModeration('another')];
    case 'half':
    case 'filtered':
    case 'refused':
    case 'without_content':
      return results.map((result, index) => (isMeant(index) ? { flagged: false } : result));
    default:
      return results;
  }
}
