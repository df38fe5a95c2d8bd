/** What a request that asks for structured output says, whatever the endpoint. */
import { isJsonObject, type Json, type JsonObject } from '../core/json.js';

export type OutputFormat = StructuredOutput | 'json_object';

/** What endpoints place in their own way: chat under `response_format`, responses under `text.format`. */
export interface StructuredOutput {
  /** `[A-Za-z0-9_-]`, 64 at most. */
  readonly name: string;
  readonly schema: JsonObject;
  /** The server then holds the model to the schema while it writes. */
  readonly strict: boolean;
}

/** @param title the schema's own, or its file's name */
export function structuredOutput(schema: JsonObject, title: string): StructuredOutput {
  const name = title.replace(/[^A-Za-z0-9_-]+/g, '_').slice(0, 64);
  return { name: name === '' ? 'answer' : name, schema, strict: fitsStrictMode(schema) };
}

/**
 * Strict mode takes a subset only: every object closed, every property required (OpenAI, structured outputs guide).
 * A schema outside of it is sent as advice, and checked here all the same.
 */
function fitsStrictMode(schema: Json): boolean {
  if (Array.isArray(schema)) return schema.every(fitsStrictMode);
  if (!isJsonObject(schema)) return true;
  if (schema['type'] === 'object' || schema['properties'] !== undefined) {
    const names = isJsonObject(schema['properties']) ? Object.keys(schema['properties']) : [];
    const required = Array.isArray(schema['required']) ? schema['required'] : [];
    if (schema['additionalProperties'] !== false || !names.every((name) => required.includes(name)))
      return false;
  }
  return Object.values(schema).every(fitsStrictMode);
}

/** @param place puts the schema and its name into the format */
export function formatOf(format: OutputFormat, place: (schema: JsonObject) => JsonObject): JsonObject {
  if (format === 'json_object') return { type: 'json_object' };
  const { name, schema, strict } = format;
  return { type: 'json_schema', ...place({ name, schema, strict }) };
}
