/** Responses: what an answer really says. Its `status` does, and not the one of HTTP. */
import type { FailureKind } from '../../core/failure.js';
import { isJsonObject, type Json, type JsonObject } from '../../core/json.js';
import { memberText } from '../../core/json-text.js';
import type { AnswerBody, FailedReading, PartReading } from '../endpoint.js';
import { badEndOf, cutWords, FILTERED_WORDS } from '../finish-reason.js';
import { badOutput, failedReading, NOT_UTF8 } from '../readings.js';

/** Reads the answer to one document. Never throws, whatever came. An `error` in it is read before, by its code. */
export function readResponse(answer: AnswerBody): readonly PartReading[] | FailedReading {
  const { body, content, isUtf8, usage } = answer;
  const { status, output } = body;
  if (!Array.isArray(output) && (status === undefined || status === 'completed')) {
    return badOutput('The answer has no output');
  }
  const said = readItems(Array.isArray(output) ? output : []);
  const itemsJson = said.saysMore ? memberText(content, 'output') : null;
  const words = said.text || said.refusal;
  const partialJson = itemsJson ?? (words === '' ? null : JSON.stringify(words));
  const failed = (kind: FailureKind, message: string): FailedReading =>
    failedReading(kind, message, partialJson);

  if (status === 'incomplete') {
    const details = body['incomplete_details'];
    const reason = isJsonObject(details) ? String(details['reason']) : 'for no reason that it tells';
    switch (badEndOf(reason)) {
      case 'truncated': {
        const hasReasoned = said.hasReasoned || (usage?.reasoningTokens ?? 0) > 0;
        const held = { hasText: said.text !== '', hasCalls: said.calls.length > 0, hasReasoned };
        return failed('truncated', cutWords(held));
      }
      case 'filtered':
        return failed('content_filtered', FILTERED_WORDS);
      default:
        return failed('bad_output', `The answer is incomplete (${reason})`);
    }
  }
  if (status === 'failed') return failed('overloaded', 'The server failed to answer and does not say why');
  if (status === 'cancelled') return failed('overloaded', 'The server cancelled its answer');
  if (status !== undefined && status !== 'completed') {
    return failed('bad_output', `The answer is not there yet (${String(status)})`);
  }
  if (said.refusal !== '') return failed('refused', `The model refused: ${said.refusal}`);
  if (!isUtf8) return failed('bad_output', NOT_UTF8.message);

  const text = said.text || (said.calls.length > 0 ? JSON.stringify(said.calls) : '');
  if (text === '' && !said.hasMedia) {
    const found = said.hasReasoned ? ': only reasoning came, no text' : '';
    return failed('bad_output', `The answer is empty${found}`);
  }
  const details = [
    ...(itemsJson === null ? [] : [`"items":${itemsJson}`]),
    ...(said.reasoning === '' ? [] : [`"reasoning":${JSON.stringify(said.reasoning)}`]),
  ];
  return [
    {
      ok: true,
      outputJson: JSON.stringify(text),
      text,
      // In the words of chat completions: a run's files are read by what knows those.
      finishReason: said.text === '' && said.calls.length > 0 ? 'tool_calls' : 'stop',
      ...(details.length > 0 && { detailsJson: `{${details.join(',')}}` }),
      responseJson: content.trim(),
    },
  ];
}

interface Said {
  readonly text: string;
  readonly refusal: string;
  /** Its summary, or all of it from a server that shows that. */
  readonly reasoning: string;
  /** There was some, shown or not. */
  readonly hasReasoned: boolean;
  readonly calls: readonly Json[];
  /** It holds pictures, an answer also where no text is beside them. */
  readonly hasMedia: boolean;
  /** The items hold more than one text. */
  readonly saysMore: boolean;
}

function readItems(output: readonly Json[]): Said {
  const items = output.filter(isJsonObject);
  const messages = items.filter(isMessage);
  // What a model says between its calls of tools is no part of the answer.
  const last = messages.filter(({ phase }) => phase === 'final_answer');
  const parts = (last.length > 0 ? last : messages).flatMap(({ content }) => partsOf(content));
  const thoughts = items.filter(({ type }) => type === 'reasoning');
  const summaries = thoughts.flatMap(({ summary }) => partsOf(summary));
  const whole = thoughts.flatMap(({ content }) => partsOf(content));
  return {
    text: textsOf(parts, 'output_text', 'text').join(''),
    refusal: textsOf(parts, 'refusal', 'refusal').join(''),
    reasoning:
      textsOf(whole, 'reasoning_text', 'text').join('\n') ||
      textsOf(summaries, 'summary_text', 'text').join('\n'),
    hasReasoned: thoughts.length > 0,
    calls: items.filter(({ type }) => type === 'function_call' || type === 'custom_tool_call'),
    hasMedia: items.some(
      ({ type, result }) => type === 'image_generation_call' && typeof result === 'string' && result !== '',
    ),
    saysMore:
      items.length > 1 || !items.every((item) => isMessage(item) && isPlain(partsOf(item['content']))),
  };
}

function isMessage({ type, content }: JsonObject): boolean {
  return type === 'message' || (type === undefined && content !== undefined);
}

function partsOf(parts: Json | undefined): readonly JsonObject[] {
  return Array.isArray(parts) ? parts.filter(isJsonObject) : [];
}

function textsOf(parts: readonly JsonObject[], type: string, name: string): string[] {
  return parts
    .filter((part) => part['type'] === type)
    .flatMap((part) => {
      const text = part[name];
      return typeof text === 'string' ? [text] : [];
    });
}

/** One text or refusal, with no sources and no probabilities beside it. */
function isPlain(parts: readonly JsonObject[]): boolean {
  return (
    parts.length <= 1 && parts.every(({ annotations, logprobs }) => isEmpty(annotations) && isEmpty(logprobs))
  );
}

function isEmpty(list: Json | undefined): boolean {
  return !Array.isArray(list) || list.length === 0;
}
