/** What an embeddings answer says of each document. A vector is its input's by `index`, never by where it stands. */
import { isJsonObject, type Json, type JsonObject } from '../../core/json.js';
import type { AnswerBody, AskedFor, FailedReading, PartReading } from '../endpoint.js';
import { asksForOne, inputsOf } from '../inputs.js';

type Vector = readonly number[];

/** Reads the vectors of an answer. Never throws, whatever came. */
export function readEmbeddings(
  { body, content, isUtf8 }: AnswerBody,
  asked: AskedFor,
): readonly PartReading[] | FailedReading {
  const { data } = body;
  if (!Array.isArray(data)) return failed('The answer has no data');
  if (!isUtf8) return failed('The answer cannot be read whole');
  const { input, dimensions } = JSON.parse(asked.bodyJson) as JsonObject;
  const vectors = withOneLength(vectorsOf(data, inputsOf(input).length), dimensions);
  if (asked.parts > 1) return vectors.map((vector) => partOf(vector));

  const [first] = vectors;
  const isOne = asksForOne(input);
  if (isOne && first !== undefined) return [partOf(first, content.trim())];
  const wrong = vectors.findIndex((vector) => typeof vector === 'string');
  if (wrong !== -1) return failed(`Of input ${wrong + 1}: ${vectors[wrong] as string}`);
  return [partOf(vectors as readonly Vector[], content.trim())];
}

function partOf(output: Vector | readonly Vector[] | string, responseJson?: string): PartReading {
  if (typeof output === 'string') return failed(output);
  return {
    ok: true,
    outputJson: JSON.stringify(output),
    text: null,
    finishReason: '',
    ...(responseJson !== undefined && { responseJson }),
  };
}

function failed(message: string): FailedReading {
  return { ok: false, kind: 'bad_output', message };
}

/** @returns for each input its vector, or what is wrong */
function vectorsOf(data: readonly Json[], inputs: number): (Vector | string)[] {
  const found: (Json[] | undefined)[] = new Array(inputs).fill(undefined);
  for (const item of data) {
    if (!isJsonObject(item)) continue;
    // Without an index a vector can be told whose it is only where there is no other.
    const index = item['index'] ?? (inputs === 1 && data.length === 1 ? 0 : null);
    if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index >= inputs) continue;
    found[index] = [...(found[index] ?? []), item['embedding'] ?? null];
  }
  return found.map((vectors) => {
    if (vectors === undefined) return 'The answer has no vector for this document';
    const [vector, another] = vectors;
    return another === undefined ? vectorOf(vector ?? null) : 'The answer has two vectors for this document';
  });
}

function vectorOf(value: Json): Vector | string {
  if (typeof value === 'string') return 'The vector is text (base64), where a list of numbers was asked for';
  if (!Array.isArray(value) || value.length === 0) return 'The vector is no list of numbers';
  // JSON has no infinity, but 1e999 is read as one.
  return value.every((member) => Number.isFinite(member))
    ? (value as number[])
    : 'The vector holds something that is no number';
}

/** Vectors that are compared with each other have one length: what was asked for, else what most have. */
function withOneLength(vectors: readonly (Vector | string)[], asked: Json | undefined): (Vector | string)[] {
  const isAsked = typeof asked === 'number';
  const length = isAsked ? asked : commonLength(vectors);
  return vectors.map((vector) => {
    if (typeof vector === 'string' || vector.length === length) return vector;
    return isAsked
      ? `The vector has ${vector.length} numbers, where ${length} were asked for`
      : `The vector has ${vector.length} numbers, where the others have ${length}`;
  });
}

function commonLength(vectors: readonly (Vector | string)[]): number {
  const counts = new Map<number, number>();
  for (const vector of vectors) {
    if (typeof vector !== 'string') counts.set(vector.length, (counts.get(vector.length) ?? 0) + 1);
  }
  let common = 0;
  for (const [length, count] of counts) if (count > (counts.get(common) ?? 0)) common = length;
  return common;
}

/** @param vectorJson of one vector */
export function lengthOf(vectorJson: string): number {
  let commas = 0;
  for (let at = vectorJson.indexOf(','); at !== -1; at = vectorJson.indexOf(',', at + 1)) commas += 1;
  return commas + 1;
}
