/** What an embeddings answer says of each document. A vector is its input's by `index`, never by where it stands. */
import type { Json, JsonObject } from '../../core/json.js';
import type { CompletedResult } from '../../core/outcome.js';
import type { TokenUsage } from '../../core/usage.js';
import type { AnswerBody, AskedFor, FailedReading, PartReading } from '../endpoint.js';
import { asksForOne, inputsOf } from '../inputs.js';
import { badOutput, figures, itemsByIndex, NOT_UTF8 } from '../readings.js';

type Vector = readonly number[];

/** Reads the vectors of an answer. Never throws, whatever came. */
export function readEmbeddings(
  { body, content, isUtf8 }: AnswerBody,
  asked: AskedFor,
): readonly PartReading[] | FailedReading {
  const { data } = body;
  if (!Array.isArray(data)) return badOutput('The answer has no data');
  if (!isUtf8) return NOT_UTF8;
  const { input, dimensions } = JSON.parse(asked.bodyJson) as JsonObject;
  const vectors = withOneLength(
    itemsByIndex(data, inputsOf(input).length, 'vector').map(vectorOf),
    dimensions,
  );
  if (asked.parts > 1) return vectors.map((vector) => partOf(vector));

  const [first] = vectors;
  const isOne = asksForOne(input);
  if (isOne && first !== undefined) return [partOf(first, content.trim())];
  const wrong = vectors.findIndex((vector) => typeof vector === 'string');
  if (wrong !== -1) return badOutput(`Of input ${wrong + 1}: ${vectors[wrong] as string}`);
  return [partOf(vectors as readonly Vector[], content.trim())];
}

function partOf(output: Vector | readonly Vector[] | string, responseJson?: string): PartReading {
  return typeof output === 'string' ? badOutput(output) : figures(output as Json, responseJson);
}

/** @param item or what is wrong with it already */
function vectorOf(item: JsonObject | string): Vector | string {
  if (typeof item === 'string') return item;
  const value = item['embedding'];
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

/**
 * The body that a document's vector would have come in alone; of a group's answer it is made when it is asked for.
 * @returns null for an answer of another endpoint: generated text has a reason to end
 */
export function bodyOfVector(
  { outputJson, model, finishReason }: CompletedResult,
  usage: TokenUsage | null,
): string | null {
  if (finishReason !== '' || !outputJson.startsWith('[')) return null;
  const tokens = usage?.inputTokens;
  const usageMember =
    tokens === undefined ? '' : `,"usage":{"prompt_tokens":${tokens},"total_tokens":${tokens}}`;
  return (
    `{"object":"list","data":[{"object":"embedding","index":0,"embedding":${outputJson}}]` +
    `,"model":${JSON.stringify(model)}${usageMember}}`
  );
}
