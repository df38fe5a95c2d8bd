/**
 * A request to responses as the chat completion that says the same, so that what is known of the one (its tokens, its
 * texts, its attachments) is known of the other. Never sent.
 */
import { isJsonObject, type Json, type JsonObject } from '../../core/json.js';

export function asChat(body: JsonObject): JsonObject {
  const { instructions, input, tools, text } = body;
  const format = isJsonObject(text) ? text['format'] : undefined;
  return {
    messages: [
      ...(typeof instructions === 'string' ? [{ role: 'system', content: instructions }] : []),
      ...(Array.isArray(input) ? input.map(messageOf) : [{ role: 'user', content: input ?? null }]),
    ],
    ...(Array.isArray(tools) && { tools: tools.map(toolOf) }),
    ...(isJsonObject(format) && { response_format: formatOf(format) }),
  };
}

function messageOf(item: Json): Json {
  if (!isJsonObject(item)) return { role: 'user', content: item };
  const { type, role, content, output } = item;
  if (typeof role === 'string') {
    return { role, content: Array.isArray(content) ? content.map(partOf) : (content ?? null) };
  }
  if (type === 'function_call') return { role: 'assistant', tool_calls: [{ function: item }] };
  if (type === 'function_call_output' && typeof output === 'string') return { role: 'tool', content: output };
  // Reasoning, references to earlier items, calls of built-in tools: parts that nobody can count.
  return { role: 'assistant', content: [{ type: String(type) }] };
}

function partOf(part: Json): Json {
  if (!isJsonObject(part)) return part;
  switch (part['type']) {
    case 'input_text':
    case 'output_text':
      return { type: 'text', text: part['text'] ?? null };
    case 'input_image':
      return {
        type: 'image_url',
        image_url: { url: part['image_url'] ?? null, detail: part['detail'] ?? null },
      };
    case 'input_file':
      return { type: 'file', file: { file_data: part['file_data'] ?? part['file_url'] ?? null } };
    default:
      return part;
  }
}

function toolOf(tool: Json): Json {
  if (!isJsonObject(tool) || tool['type'] !== 'function') return tool;
  const { type, ...rest } = tool;
  return { type, function: rest };
}

function formatOf(format: JsonObject): Json {
  const { type, ...schema } = format;
  return type === 'json_schema' ? { type, json_schema: schema } : format;
}
