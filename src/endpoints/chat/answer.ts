/** Chat completions: what an answer really says. */
import type { FailureKind } from '../../core/failure.js';
import { isJsonObject } from '../../core/json.js';
import type { AnswerBody, FailedReading, PartReading } from '../endpoint.js';
import { badEndOf, cutWords, FILTERED_WORDS, finishReasonOf, gaveUpWords } from '../finish-reason.js';
import { badOutput, failedReading, NOT_UTF8 } from '../readings.js';
import { readMessage } from './message.js';

/** Reads a chat completion, the answer to one document. Never throws, whatever came. */
export function readChatAnswer(answer: AnswerBody): readonly PartReading[] | FailedReading {
  const { body, content, isUtf8, usage } = answer;
  const choices = Array.isArray(body['choices']) ? body['choices'] : [];
  const [choice] = choices;
  if (!isJsonObject(choice)) return badOutput('The answer has no choices');

  const finishReason = finishReasonOf(choice);
  const end = badEndOf(finishReason);
  const message = readMessage(content, choices, choice);
  const failed = (kind: FailureKind, words: string): FailedReading =>
    failedReading(kind, words, message.partialJson);

  if (isJsonObject(choice['error'])) return { ok: false, errorIn: choice };
  if (end === 'truncated') {
    const hasReasoned = message.reasoning !== '' || (usage?.reasoningTokens ?? 0) > 0;
    const held = { hasText: message.text !== '', hasCalls: message.callsJson !== null, hasReasoned };
    return failed('truncated', cutWords(held));
  }
  if (end === 'filtered') return failed('content_filtered', FILTERED_WORDS);
  if (message.refusal !== '') return failed('refused', `The model refused: ${message.refusal}`);
  if (end === 'gave_up') return failed('overloaded', gaveUpWords(finishReason));
  if (!isUtf8) return failed('bad_output', NOT_UTF8.message);

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
