/** Chat completions: what an answer really says. */
import type { FailureKind } from '../../core/failure.js';
import { isJsonObject } from '../../core/json.js';
import type { AnswerBody, FailedReading, PartReading } from '../endpoint.js';
import { badEndOf, cutWords, FILTERED_WORDS, gaveUpWords } from '../finish-reason.js';
import { readMessage } from './message.js';

/** Reads a chat completion, the answer to one document. Never throws, whatever came. */
export function readChatAnswer(answer: AnswerBody): readonly PartReading[] | FailedReading {
  const { body, content, isUtf8, usage } = answer;
  const choices = Array.isArray(body['choices']) ? body['choices'] : [];
  const [choice] = choices;
  if (!isJsonObject(choice)) {
    return { ok: false, kind: 'bad_output', message: 'The answer has no choices' };
  }

  const told = choice['finish_reason'];
  const finishReason = typeof told === 'string' && told !== '' ? told : 'unknown';
  const end = badEndOf(finishReason);
  const message = readMessage(content, choices, choice);
  const failed = (kind: FailureKind, words: string): FailedReading => ({
    ok: false,
    kind,
    message: words,
    ...(message.partialJson !== null && { partialOutputJson: message.partialJson }),
  });

  if (isJsonObject(choice['error'])) return { ok: false, errorIn: choice };
  if (end === 'truncated') {
    const hasReasoned = message.reasoning !== '' || (usage?.reasoningTokens ?? 0) > 0;
    const words = cutWords({
      hasText: message.text !== '',
      hasCalls: message.callsJson !== null,
      hasReasoned,
    });
    return failed('truncated', words);
  }
  if (end === 'filtered') return failed('content_filtered', FILTERED_WORDS);
  if (message.refusal !== '') return failed('refused', `The model refused: ${message.refusal}`);
  if (end === 'gave_up') return failed('overloaded', gaveUpWords(finishReason));
  // An answer in which characters were replaced would pass for the model's own words.
  if (!isUtf8) return failed('bad_output', 'The answer cannot be read whole');

  const text = message.text || (message.callsJson ?? '');
  if (text === '' && !message.hasMedia) {
    const found = message.reasoning === '' ? '' : ': only reasoning came, no text';
    return failed('bad_output', `The answer is empty${found}`);
  }
  return [
    {
      ok: true,
      outputJson: JSON.stringify(text),
      text,
      finishReason,
      ...(message.detailsJson !== null && { detailsJson: message.detailsJson }),
      responseJson: content.trim(),
    },
  ];
}
