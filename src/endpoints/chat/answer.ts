/** Chat completions: what an answer really says. */
import type { FailureKind } from '../../core/failure.js';
import { isJsonObject } from '../../core/json.js';
import type { TokenUsage } from '../../core/usage.js';
import type { AnswerBody, FailedReading, PartReading } from '../endpoint.js';
import { type ChatMessage, readMessage } from './message.js';

/** `finish_reason` of an answer cut off at the output limit; `model_length` is Mistral's for the context's end. */
const TRUNCATED = new Set(['length', 'max_tokens', 'max_output_tokens', 'model_length']);
const FILTERED = new Set(['content_filter', 'content-filter', 'safety', 'sensitive', 'recitation']);
/** The server gave up: OpenRouter, DeepSeek, Zhipu, vLLM and SGLang. */
const GAVE_UP = new Set(['error', 'insufficient_system_resource', 'network_error', 'abort']);

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
  const reason = finishReason.toLowerCase();
  const message = readMessage(content, choices, choice);
  const failed = (kind: FailureKind, words: string): FailedReading => ({
    ok: false,
    kind,
    message: words,
    ...(message.partialJson !== null && { partialOutputJson: message.partialJson }),
  });

  if (isJsonObject(choice['error'])) return { ok: false, errorIn: choice };
  if (TRUNCATED.has(reason)) return failed('truncated', describeCut(message, usage));
  if (FILTERED.has(reason) || reason.startsWith('content_filter')) {
    return failed('content_filtered', "The server's content filter stopped the answer");
  }
  if (message.refusal !== '') return failed('refused', `The model refused: ${message.refusal}`);
  if (GAVE_UP.has(reason)) {
    return failed('overloaded', `The server gave up while answering (${finishReason})`);
  }
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

/** What the length limit has cut off. Reasoning counts against it, and not every server shows what it was. */
function describeCut({ text, callsJson, reasoning }: ChatMessage, usage: TokenUsage | null): string {
  if (callsJson !== null) return 'The tool call was cut off at the length limit';
  if (text !== '') return 'The answer was cut off at its length limit';
  return reasoning !== '' || (usage?.reasoningTokens ?? 0) > 0
    ? 'There was only reasoning, no text, before the length limit'
    : 'No text came before the length limit';
}
