/** Calls with several inputs: which documents they are, and what they take. */
import { createHash } from 'node:crypto';
import { isJsonObject, type Json, type JsonObject } from '../core/json.js';
import { textTokens } from './answer.js';
import type { Inquiry } from './endpoint.js';

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
  return textsOf(input).reduce((sum, text) => sum + textTokens(text), 0);
}

function textsOf(input: Input): string[] {
  if (typeof input === 'string') return [input];
  return input.flatMap((part) =>
    isJsonObject(part) && typeof part['text'] === 'string' ? [part['text']] : [],
  );
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
  const userTexts = inputs.map((input) => textsOf(input).join('\n'));
  const lead = Math.max(
    0,
    userTexts.findIndex((text) => text.includes('[[simulate:')),
  );
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

function fingerprintOf(input: Input): string {
  return createHash('sha256').update(JSON.stringify(input)).digest('hex').slice(0, 12);
}

/** Turned round and begun elsewhere each time. */
export function shuffled<Item>(items: readonly Item[], callNumber: number): Item[] {
  const start = callNumber % items.length;
  return [...items.slice(start), ...items.slice(0, start)].reverse();
}
