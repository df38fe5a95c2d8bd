/** Calls with several inputs: which documents they are, and what they take. */
import { isJsonObject, type Json, type JsonObject } from '../core/json.js';
import { fingerprintOf, textsOf, textTokens } from './answer.js';
import { mayDirect } from './directive.js';
import type { AnswerVariant, Inquiry } from './endpoint.js';

/** A text, tokens, or the parts of one message. */
export type Input = string | number[] | JsonObject[];

/** Null for what is none of them. */
export function inputsOf(content: Json): Input[] | null {
  if (isInput(content)) return [content];
  return Array.isArray(content) && content.every(isInput) ? content : null;
}

function isInput(value: Json): value is Input {
  if (typeof value === 'string') return true;
  if (!Array.isArray(value) || value.length === 0) return false;
  return value.every(Number.isInteger) || value.every(isJsonObject);
}

export function tokensOf(input: Input): number {
  if (Array.isArray(input) && typeof input[0] === 'number') return input.length;
  return textsOf({ content: input }).reduce((sum, text) => sum + textTokens(text), 0);
}

export interface AskedInputs
  extends Pick<Inquiry, 'fingerprint' | 'companions' | 'userTexts' | 'promptTokens'> {
  readonly inputs: readonly Input[];
  /** The one that a fault is meant for. */
  readonly lead: number;
}

/** What is asked of the simulator stands in one text of a call: that one is the document whose calls are counted. */
export function inquireInputs(content: Json): AskedInputs {
  const inputs = inputsOf(content) ?? [];
  const userTexts = inputs.map((input) => textsOf({ content: input }).join('\n'));
  const lead = Math.max(0, userTexts.findIndex(mayDirect));
  const fingerprints = inputs.map(fingerprintOf);
  return {
    inputs,
    lead,
    fingerprint: fingerprints[lead] ?? '',
    companions: fingerprints.filter((_fingerprint, index) => index !== lead),
    userTexts,
    promptTokens: inputs.reduce((sum, input) => sum + tokensOf(input), 0),
  };
}

/**
 * What a fault of a call makes of the list in its answer, whose items have an `index` each.
 * @param lead the item that the fault is meant for
 * @param another what a second item under its index says
 */
export function listWithFault(
  items: readonly JsonObject[],
  lead: number,
  variant: AnswerVariant,
  callNumber: number,
  another: JsonObject,
): JsonObject[] {
  switch (variant) {
    case 'without_choices':
      return [];
    case 'shuffled':
      return shuffled(items, callNumber);
    case 'index_missing':
      return items.filter((_, index) => index !== lead);
    case 'index_unknown':
      return items.map((item, index) => (index === lead ? { ...item, index: items.length } : item));
    case 'index_doubled':
      return [...items, { ...items[lead], ...another }];
    default:
      return [...items];
  }
}

/** Turned round and begun elsewhere each time. */
function shuffled<Item>(items: readonly Item[], callNumber: number): Item[] {
  const start = callNumber % items.length;
  return [...items.slice(start), ...items.slice(0, start)].reverse();
}
