/** What a moderations answer says of each document. A result is its input's by its place: it has no other mark. */
import { isJsonObject, type Json, type JsonObject } from '../../core/json.js';
import type { CompletedResult } from '../../core/outcome.js';
import type { AnswerBody, AskedFor, FailedReading, PartReading } from '../endpoint.js';
import { asksForOne, inputsOf } from '../inputs.js';
import { badOutput, figures, NOT_UTF8 } from '../readings.js';

/** Reads the results of an answer. Never throws, whatever came. */
export function readModerations(
  { body, content, isUtf8 }: AnswerBody,
  asked: AskedFor,
): readonly PartReading[] | FailedReading {
  const { results } = body;
  if (!Array.isArray(results)) return badOutput('The answer has no results');
  if (!isUtf8) return NOT_UTF8;
  const { input } = JSON.parse(asked.bodyJson) as JsonObject;
  const wanted = inputsOf(input).length;
  // One too few or too many, and nobody knows whose the others are.
  if (results.length !== wanted) {
    return badOutput(`The answer has ${results.length} results, where ${wanted} were asked for`);
  }
  if (asked.parts > 1) return results.map((result) => partOf(result, [result]));
  return [partOf(asksForOne(input) ? (results[0] ?? null) : results, results, content.trim())];
}

/** @param results all that the output holds */
function partOf(output: Json, results: readonly Json[], responseJson?: string): PartReading {
  return results.every(isResult) ? figures(output, responseJson) : badOutput('The result has no categories');
}

/** Mistral's say no `flagged`. */
function isResult(result: Json): boolean {
  return isJsonObject(result) && isFilled(result['categories']) && isFilled(result['category_scores']);
}

function isFilled(value: Json | undefined): boolean {
  return isJsonObject(value) && Object.keys(value).length > 0;
}

/** @returns null for an answer of another endpoint: only a result is an object without a reason to end */
export function bodyOfResult({ outputJson, model, finishReason }: CompletedResult): string | null {
  if (finishReason !== '' || !outputJson.startsWith('{')) return null;
  return `{"model":${JSON.stringify(model)},"results":[${outputJson}]}`;
}
