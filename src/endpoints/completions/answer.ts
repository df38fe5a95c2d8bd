/** What a completions answer says of each prompt. A text is its prompt's by `index`, never by where it stands. */
import type { FailureKind } from '../../core/failure.js';
import { isJsonObject, type JsonObject } from '../../core/json.js';
import type { AnswerBody, AskedFor, FailedReading, PartReading } from '../endpoint.js';
import { badEndOf, cutWords, FILTERED_WORDS, finishReasonOf, gaveUpWords } from '../finish-reason.js';
import { asksForOne, inputsOf } from '../inputs.js';
import { badOutput, failedReading, itemsByIndex, NOT_UTF8 } from '../readings.js';

/** Reads the texts of an answer. Never throws, whatever came. */
export function readCompletions(
  { body, content, isUtf8 }: AnswerBody,
  asked: AskedFor,
): readonly PartReading[] | FailedReading {
  const choices = Array.isArray(body['choices']) ? body['choices'] : [];
  if (choices.length === 0) return badOutput('The answer has no choices');
  if (!isUtf8) return NOT_UTF8;
  const request = JSON.parse(asked.bodyJson) as JsonObject;
  const parts = itemsByIndex(choices, inputsOf(request['prompt']).length, 'text').map((choice) =>
    typeof choice === 'string' ? badOutput(choice) : partOf(choice, request),
  );
  if (asked.parts > 1) {
    return parts.map((part) => (part.ok ? { ...part, responseJson: bodyOfChoice(part.choice, body) } : part));
  }

  const responseJson = content.trim();
  const [first] = parts;
  if (first !== undefined && asksForOne(request['prompt'])) {
    return [first.ok ? { ...first, responseJson } : first];
  }
  const wrong = parts.findIndex(({ ok }) => !ok);
  const bad = parts[wrong];
  if (bad?.ok === false) {
    return 'message' in bad ? { ...bad, message: `Of prompt ${wrong + 1}: ${bad.message}` } : bad;
  }
  const texts = parts.flatMap((part) => (part.ok ? [part.text] : []));
  const reasons = parts.flatMap((part) => (part.ok ? [part.finishReason] : []));
  return [
    {
      ok: true,
      outputJson: JSON.stringify(texts),
      text: null,
      finishReason: reasons.find((reason) => reason !== 'stop') ?? 'stop',
      responseJson,
    },
  ];
}

type CompletionReading =
  | (Extract<PartReading, { ok: true }> & { readonly text: string; readonly choice: JsonObject })
  | FailedReading;

function partOf(choice: JsonObject, request: JsonObject): CompletionReading {
  const text = typeof choice['text'] === 'string' ? choice['text'] : '';
  const finishReason = finishReasonOf(choice);
  const failed = (kind: FailureKind, message: string): FailedReading =>
    failedReading(kind, message, text === '' ? null : JSON.stringify(text));
  switch (badEndOf(finishReason)) {
    case 'truncated': {
      const words = cutWords({ hasText: text !== '', hasCalls: false, hasReasoned: false });
      const isDefault = request['max_tokens'] === undefined;
      return failed('truncated', words + (isDefault ? ', a few tokens where max_tokens is not set' : ''));
    }
    case 'filtered':
      return failed('content_filtered', FILTERED_WORDS);
    case 'gave_up':
      return failed('overloaded', gaveUpWords(finishReason));
    case null:
  }
  if (text === '') return badOutput('The answer is empty');
  const { logprobs = null } = choice;
  return {
    ok: true,
    outputJson: JSON.stringify(text),
    text,
    finishReason,
    ...(isJsonObject(logprobs) && { detailsJson: JSON.stringify({ logprobs }) }),
    choice,
  };
}

/** The body that this answer would have come in alone. */
function bodyOfChoice(
  choice: JsonObject,
  { choices: _choices, usage: _usage, ...envelope }: JsonObject,
): string {
  return JSON.stringify({ ...envelope, choices: [{ ...choice, index: 0 }] });
}
