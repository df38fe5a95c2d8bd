/** What the answers of several endpoints say alike of one document. */
import type { FailureKind } from '../core/failure.js';
import { isJsonObject, type Json, type JsonObject } from '../core/json.js';
import type { AnsweredReading, FailedReading } from './endpoint.js';

/** @param partialOutputJson what there is of the answer; null: nothing */
export function failedReading(
  kind: FailureKind,
  message: string,
  partialOutputJson: string | null = null,
): FailedReading {
  return { ok: false, kind, message, ...(partialOutputJson !== null && { partialOutputJson }) };
}

export function badOutput(message: string): FailedReading {
  return failedReading('bad_output', message);
}

/** An answer in which characters were replaced would pass for the model's own words. */
export const NOT_UTF8 = {
  ok: false,
  kind: 'bad_output',
  message: 'The answer cannot be read whole',
} as const;

/** An output that is no text. @param responseJson absent where the body holds other documents too */
export function figures(output: Json, responseJson?: string): AnsweredReading {
  return {
    ok: true,
    outputJson: JSON.stringify(output),
    text: null,
    finishReason: '',
    ...(responseJson !== undefined && { responseJson }),
  };
}

/**
 * Items of a list are told by their `index`, never by where they stand.
 * @param noun what an item holds, for messages
 * @returns for each input its item, or what is wrong
 */
export function itemsByIndex(list: readonly Json[], inputs: number, noun: string): (JsonObject | string)[] {
  const found: JsonObject[][] = Array.from({ length: inputs }, () => []);
  for (const item of list) {
    if (!isJsonObject(item)) continue;
    // Without an index it can be told whose it is only where there is no other.
    const index = item['index'] ?? (inputs === 1 && list.length === 1 ? 0 : null);
    if (typeof index === 'number') found[index]?.push(item);
  }
  return found.map(([item, another]) => {
    if (item === undefined) return `The answer has no ${noun} for this document`;
    return another === undefined ? item : `The answer has two ${noun}s for this document`;
  });
}
