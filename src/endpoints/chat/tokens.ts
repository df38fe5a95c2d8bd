/** The prompt tokens of a chat completion: what is said, and the framing the server puts around it. */
import { isJsonObject, type Json, type JsonObject } from '../../core/json.js';
import type { TokenTally } from '../endpoint.js';

/** Framing of a message, after the counting recipe OpenAI publishes for gpt-3.5 and later. */
const TOKENS_PER_MESSAGE = 3;
const TOKENS_PER_NAME = 1;
/** The answer is primed with its own first framing tokens; reasoning models were measured to use one less. */
const TOKENS_OF_PRIMING = 3;
const TOKENS_OF_REASONING_PRIMING = 2;
/** gpt-oss is sent a system message of its own, naming its channels and the date. */
const TOKENS_OF_HARMONY_PREAMBLE = 62;
/** A call of a function that the assistant made earlier, beside its name and arguments. */
const TOKENS_PER_TOOL_CALL = 3;

/** Adds a chat completion's body; fields of a wrong type are passed over. */
export function countChatTokens(body: JsonObject, tally: TokenTally): void {
  const messages = body['messages'];
  if (Array.isArray(messages)) {
    for (const message of messages) if (isJsonObject(message)) countMessage(message, tally);
  }
  countFraming(tally);
  countTools([...functionsOf(body['tools']), ...asObjects(body['functions'])], tally);
  const format = body['response_format'] ?? null;
  if (isJsonObject(format)) countSchema(format['json_schema'] ?? null, tally);
}

/** What surrounds the messages, once per request. */
function countFraming(tally: TokenTally): void {
  const isReasoning = /^o[134](?:-|$)|^gpt-[5-9]/.test(tally.modelName) && !/-chat/.test(tally.modelName);
  tally.addTokens(isReasoning ? TOKENS_OF_REASONING_PRIMING : TOKENS_OF_PRIMING);
  if (tally.modelName.startsWith('gpt-oss')) {
    tally.addTokens(TOKENS_OF_HARMONY_PREAMBLE);
    tally.markEstimated();
  }
}

function countMessage(message: JsonObject, tally: TokenTally): void {
  tally.addTokens(TOKENS_PER_MESSAGE);
  tally.addText(message['role']);
  if (typeof message['name'] === 'string') {
    tally.addTokens(TOKENS_PER_NAME);
    tally.addText(message['name']);
  }
  countContent(message['content'], tally);
  tally.addText(message['refusal']);
  const calls = [...functionsOf(message['tool_calls']), ...asObjects([message['function_call'] ?? null])];
  for (const call of calls) countToolCall(call, tally);
}

/** A text, or parts in the shape of chat completions. */
function countContent(content: Json | undefined, tally: TokenTally): void {
  if (typeof content === 'string') tally.addText(content);
  else if (Array.isArray(content)) {
    for (const part of content) {
      if (typeof part === 'string') tally.addText(part);
      else if (isJsonObject(part)) countPart(part, tally);
    }
  }
}

function countPart(part: JsonObject, tally: TokenTally): void {
  const image = part['image_url'] ?? null;
  switch (part['type']) {
    case 'text':
      tally.addText(part['text']);
      return;
    case 'refusal':
      tally.addText(part['refusal']);
      return;
    case 'image_url':
      if (isJsonObject(image)) tally.addImage(image['url'], image['detail'] ?? part['detail']);
      else tally.addImage(image, part['detail']);
      return;
    default:
      tally.addUncounted();
  }
}

function countToolCall(call: JsonObject, tally: TokenTally): void {
  tally.addTokens(TOKENS_PER_TOOL_CALL);
  tally.addText(call['name']);
  tally.addText(call['arguments']);
  tally.markEstimated();
}

/** Around a function, a property, an enumeration and all of them, after the recipe OpenAI publishes. */
const TOKENS_PER_FUNCTION = 7;
const TOKENS_PER_FUNCTION_OF_OLDER_MODELS = 10;
const TOKENS_OF_PROPERTIES = 3;
const TOKENS_PER_PROPERTY = 3;
const TOKENS_OF_ENUMERATION = -3;
const TOKENS_PER_ENUMERATED = 3;
const TOKENS_OF_TOOLS = 12;

/** @param functions `{ name, description?, parameters? }` each */
function countTools(functions: readonly JsonObject[], tally: TokenTally): void {
  if (functions.length === 0) return;
  tally.markEstimated();
  tally.addTokens(TOKENS_OF_TOOLS);
  const isOlder = /^gpt-3|^gpt-4(?:-|$)/.test(tally.modelName);
  for (const tool of functions) {
    tally.addTokens(isOlder ? TOKENS_PER_FUNCTION_OF_OLDER_MODELS : TOKENS_PER_FUNCTION);
    tally.addText(`${textOf(tool['name'])}:${withoutFinalStop(textOf(tool['description']))}`);
    const parameters = tool['parameters'] ?? null;
    if (isJsonObject(parameters)) countProperties(parameters, tally);
  }
}

/** The published recipe knows flat properties; those of objects and array items inside count alike. */
function countProperties(schema: JsonObject, tally: TokenTally): void {
  const properties = schema['properties'] ?? null;
  if (!isJsonObject(properties) || Object.keys(properties).length === 0) return;
  tally.addTokens(TOKENS_OF_PROPERTIES);
  for (const [name, property] of Object.entries(properties)) {
    if (!isJsonObject(property)) continue;
    tally.addTokens(TOKENS_PER_PROPERTY);
    const type = property['type'] ?? '';
    const description = withoutFinalStop(textOf(property['description']));
    tally.addText(`${name}:${typeof type === 'string' ? type : JSON.stringify(type)}:${description}`);
    const choices = property['enum'];
    if (Array.isArray(choices)) {
      tally.addTokens(TOKENS_OF_ENUMERATION);
      for (const choice of choices) {
        tally.addTokens(TOKENS_PER_ENUMERATED);
        tally.addText(typeof choice === 'string' ? choice : JSON.stringify(choice));
      }
    }
    countProperties(property, tally);
    const items = property['items'] ?? null;
    if (isJsonObject(items)) countProperties(items, tally);
  }
}

/** How a schema reaches the model is not published: its JSON and a heading of some ten tokens are assumed. */
const TOKENS_OF_SCHEMA = 10;

/** @param format `{ name, schema, description? }` */
function countSchema(format: Json, tally: TokenTally): void {
  if (!isJsonObject(format)) return;
  tally.addTokens(TOKENS_OF_SCHEMA);
  tally.addText(format['name']);
  tally.addText(format['description']);
  tally.addJson(format['schema'] ?? null);
}

/** Chat completions wrap a function in `{ type, function }`. */
function functionsOf(tools: Json | undefined): JsonObject[] {
  return asObjects(asObjects(tools).map((tool) => tool['function'] ?? tool['custom'] ?? null));
}

function asObjects(values: Json | undefined): JsonObject[] {
  return Array.isArray(values) ? values.filter(isJsonObject) : [];
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

function withoutFinalStop(text: string): string {
  return text.endsWith('.') ? text.slice(0, -1) : text;
}
