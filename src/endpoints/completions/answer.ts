/** What a completions answer says of each prompt. A text is its prompt's by `index`, never by where it stands. */
import type { FailureKind } from '../../core/failure.js';
import { isJsonObject, type Json, type JsonObject } from '../../core/json.js';
import type { AnswerBody, AskedFor, FailedReading, PartReading } from '../endpoint.js';
import { badEndOf, cutWords, FILTERED_WORDS, gaveUpWords } from '../finish-reason.js';
import { asksForOne, inputsOf } from '../inputs.js';

/** Reads the texts of an answer. Never throws, whatever came. */
export function readCompletions(
  { body, content, isUtf8 }: AnswerBody,
  asked: AskedFor,
): readonly PartReading[] | FailedReading {
  const choices = Array.isArray(body['choices']) ? body['choices'] : [];
  if (choices.length === 0) return failed('bad_output', 'The answer has no choices');
  if (!isUtf8) return failed('bad_output', 'The answer cannot be read whole');
  const request = JSON.parse(asked.bodyJson) as JsonObject;
  const parts = partsOf(choices, inputsOf(request['prompt']).length).map((choice) =>
    typeof choice === 'string' ? failed('bad_output', choice) : partOf(choice, request),
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

/** @returns for each prompt its choice, or what is wrong */
function partsOf(choices: readonly Json[], prompts: number): (JsonObject | string)[] {
  const found: JsonObject[][] = Array.from({ length: prompts }, () => []);
  for (const choice of choices) {
    if (!isJsonObject(choice)) continue;
    // Without an index a text can be told whose it is only where there is no other.
    const index = choice['index'] ?? (prompts === 1 && choices.length === 1 ? 0 : null);
    if (typeof index === 'number') found[index]?.push(choice);
  }
  return found.map(([choice, another]) => {
    if (choice === undefined) return 'The answer has no text for this document';
    return another === undefined ? choice : 'The answer has two texts for this document';
  });
}

type CompletionReading =
  | (Extract<PartReading, { ok: true }> & { readonly text: string; readonly choice: JsonObject })
  | FailedReading;

function partOf(choice: JsonObject, request: JsonObject): CompletionReading {
  const text = typeof choice['text'] === 'string' ? choice['text'] : '';
  const told = choice['finish_reason'];
  const finishReason = typeof told === 'string' && told !== '' ? told : 'unknown';
  switch (badEndOf(finishReason)) {
    case 'truncated': {
      const words = cutWords({ hasText: text !== '', hasCalls: false, hasReasoned: false });
      const isDefault = request['max_tokens'] === undefined;
      return failed(
        'truncated',
        isDefault ? `${words}, a few tokens where max_tokens is not set` : words,
        text,
      );
    }
    case 'filtered':
      return failed('content_filtered', FILTERED_WORDS, text);
    case 'gave_up':
      return failed('overloaded', gaveUpWords(finishReason), text);
    case null:
  }
  if (text === '') return failed('bad_output', 'The answer is empty');
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

function failed(kind: FailureKind, message: string, text = ''): FailedReading {
  return { ok: false, kind, message, ...(text !== '' && { partialOutputJson: JSON.stringify(text) }) };
}
