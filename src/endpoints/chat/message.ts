/** What one choice of a chat completion holds: its text, and what there is beside it. */
import { isJsonObject, type Json, type JsonObject } from '../../core/json.js';
import { firstElementText, memberText } from '../../core/json-text.js';

export interface ChatMessage {
  /** Empty where it holds none; of a spoken answer the transcript. */
  readonly text: string;
  readonly refusal: string;
  /** What the model thought before it answered, where the server shows it. */
  readonly reasoning: string;
  /** JSON text of its tool calls; null where it has none. */
  readonly callsJson: string | null;
  /** It holds sound or pictures, an answer also where no text is beside them. */
  readonly hasMedia: boolean;
  /** As `AnsweredReading` has it; null where the answer is a text and nothing more. */
  readonly detailsJson: string | null;
  /** JSON text of what there is of an answer that failed: its text, its message or its choices; null for nothing. */
  readonly partialJson: string | null;
}

/**
 * Reads the first choice of a body.
 * @param content the body's JSON text, from which details are taken as they stand there
 */
export function readMessage(content: string, choices: readonly Json[], choice: JsonObject): ChatMessage {
  const message = isJsonObject(choice['message']) ? choice['message'] : {};
  const { audio, refusal } = message;
  const transcript = isJsonObject(audio) ? textOf(audio['transcript']) : '';
  const text = textsOf(message['content'], 'text') || transcript;
  const reasoning =
    textOf(message['reasoning_content']) ||
    textOf(message['reasoning']) ||
    textsOf(message['content'], 'thinking');
  const saysMore = Object.entries(message).some(([name, value]) => saysMoreThanText(name, value, text));
  const hasLogprobs = isPresent(choice['logprobs']);

  const members: [name: string, json: string | null][] = [];
  if (saysMore || hasLogprobs || choices.length > 1) {
    const choicesJson = memberText(content, 'choices') ?? '';
    const choiceJson = firstElementText(choicesJson) ?? '';
    members.push(['message', memberText(choiceJson, 'message')]);
    if (reasoning !== '') members.push(['reasoning', JSON.stringify(reasoning)]);
    if (hasLogprobs) members.push(['logprobs', memberText(choiceJson, 'logprobs')]);
    if (choices.length > 1) members.push(['choices', choicesJson]);
  }
  const details = members.filter(([, json]) => json !== null);
  const detail = (wanted: string) => details.find(([name]) => name === wanted)?.[1];
  const said = text || textOf(refusal);
  return {
    text,
    reasoning,
    refusal: textOf(refusal),
    callsJson: callsOf(message),
    hasMedia: isPresent(audio) || isPresent(message['images']),
    detailsJson:
      details.length === 0 ? null : `{${details.map(([name, json]) => `"${name}":${json}`).join(',')}}`,
    partialJson:
      detail('choices') ??
      (saysMore ? detail('message') : undefined) ??
      (said === '' ? null : JSON.stringify(said)),
  };
}

/** A refusal with no text beside it is the message's only text. */
function saysMoreThanText(name: string, value: Json, text: string): boolean {
  if (name === 'role') return false;
  if (name === 'content') return Array.isArray(value);
  if (name === 'refusal' && text === '') return false;
  return isPresent(value);
}

/** Servers fill in what a message does not have with null, false, `""`, `[]` or `{}`. */
function isPresent(value: Json | undefined): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (isJsonObject(value)) return Object.values(value).some((member) => member !== null);
  return value !== undefined && value !== null && value !== false && value !== '';
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

/**
 * Content is a text, or a list of parts (Mistral's reasoning models): `{type: "text", text}` and
 * `{type: "thinking", thinking: [{type: "text", text}]}`.
 */
function textsOf(content: Json | undefined, name: 'text' | 'thinking'): string {
  if (typeof content === 'string') return name === 'text' ? content : '';
  if (!Array.isArray(content)) return '';
  return content
    .map((part) => {
      const said = isJsonObject(part) ? part[name] : undefined;
      if (!Array.isArray(said)) return textOf(said);
      return said.map((inner) => (isJsonObject(inner) ? textOf(inner['text']) : '')).join('');
    })
    .join('');
}

function callsOf(message: JsonObject): string | null {
  const { tool_calls: toolCalls, function_call: functionCall } = message;
  if (Array.isArray(toolCalls) && toolCalls.length > 0) return JSON.stringify(toolCalls);
  return isJsonObject(functionCall) && isPresent(functionCall) ? JSON.stringify(functionCall) : null;
}
