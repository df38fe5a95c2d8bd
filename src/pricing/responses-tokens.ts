/** The input tokens of a request to the responses endpoint, which frames its items as chat does its messages. */
import { isJsonObject, type Json, type JsonObject } from '../core/json.js';
import {
  asObjects,
  countFraming,
  countMessage,
  countSchema,
  countToolCall,
  countTools,
} from './chat-tokens.js';
import type { RequestTally } from './request-tally.js';

/** Adds the body of a responses request. What an earlier response or a stored prompt brings in is not seen. */
export function countResponsesTokens(body: JsonObject, tally: RequestTally): void {
  const instructions = body['instructions'];
  if (typeof instructions === 'string') countMessage({ role: 'system', content: instructions }, tally);
  const input = body['input'];
  if (typeof input === 'string') countMessage({ role: 'user', content: input }, tally);
  else for (const item of asObjects(input)) countItem(item, tally);
  countFraming(tally);
  const tools = asObjects(body['tools']);
  const functions = tools.filter((tool) => tool['type'] === 'function');
  countTools(functions, tally);
  for (let hosted = functions.length; hosted < tools.length; hosted += 1) tally.addUncounted();
  const text = body['text'] ?? null;
  const format: Json = isJsonObject(text) ? (text['format'] ?? null) : null;
  if (isJsonObject(format) && format['type'] === 'json_schema') countSchema(format, tally);
  if (body['previous_response_id'] ?? body['prompt'] ?? body['conversation']) tally.addUncounted();
}

function countItem(item: JsonObject, tally: RequestTally): void {
  switch (item['type'] ?? 'message') {
    case 'message':
      countMessage(item, tally);
      return;
    case 'function_call':
      countToolCall(item, tally);
      return;
    case 'function_call_output':
      countMessage({ role: 'tool', content: item['output'] ?? null }, tally);
      return;
    default:
      tally.addUncounted();
  }
}
