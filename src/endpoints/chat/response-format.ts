/** How a chat completion asks for structured output. */
import type { JsonObject } from '../../core/json.js';
import type { OutputFormat } from '../structured-output.js';

export function outputParameters(format: OutputFormat): JsonObject {
  return { response_format: responseFormat(format) };
}

function responseFormat(format: OutputFormat): JsonObject {
  if (format === 'json_object') return { type: 'json_object' };
  const { name, schema, strict } = format;
  return { type: 'json_schema', json_schema: { name, schema, strict } };
}
