/**
 * A value that fits a JSON Schema, for rehearsals of structured output: a pure function of schema and fingerprint,
 * so that answers stay tied to their documents. It knows the keywords that structured output allows; a schema that
 * says more (patterns, contains, conditions) may get a value that does not fit, as from a real model.
 */
import { isJsonObject, type Json, type JsonObject } from '../core/json.js';

/** Recursive schemas end here: deeper optional parts are left out, deeper required ones are empty. */
const DEEPEST = 8;

export function schemaInstance(schema: Json, fingerprint: string): Json {
  return instance(schema, { root: schema, fingerprint, depth: 0 });
}

interface Place {
  readonly root: Json;
  readonly fingerprint: string;
  readonly depth: number;
}

function instance(schema: Json, place: Place): Json {
  if (!isJsonObject(schema)) return `simulated ${place.fingerprint}`;
  if (schema['const'] !== undefined) return schema['const'];
  if (Array.isArray(schema['enum'])) return choose(schema['enum'], place);
  if (typeof schema['$ref'] === 'string')
    return instance(resolveReference(schema['$ref'], place.root), deeper(place));
  const choices = schema['anyOf'] ?? schema['oneOf'];
  if (Array.isArray(choices)) return instance(choose(choices, place), deeper(place));
  switch (typeOf(schema)) {
    case 'object':
      return objectInstance(schema, place);
    case 'array':
      return arrayInstance(schema, place);
    case 'integer':
      return Math.ceil(numberIn(schema, place));
    case 'number':
      return numberIn(schema, place);
    case 'boolean':
      return numberOf(place) % 2 === 0;
    case 'null':
      return null;
    default:
      return stringInstance(schema, place);
  }
}

function typeOf(schema: JsonObject): string {
  const { type } = schema;
  const first = Array.isArray(type) ? (type.find((name) => name !== 'null') ?? 'null') : type;
  if (typeof first === 'string') return first;
  if (schema['properties'] !== undefined) return 'object';
  return schema['items'] === undefined ? 'string' : 'array';
}

function objectInstance(schema: JsonObject, place: Place): JsonObject {
  const properties = isJsonObject(schema['properties']) ? schema['properties'] : {};
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  const names = Object.keys(properties).filter((name) => place.depth < DEEPEST || required.includes(name));
  return Object.fromEntries(names.map((name) => [name, instance(properties[name] ?? {}, deeper(place))]));
}

function arrayInstance(schema: JsonObject, place: Place): Json[] {
  const least = typeof schema['minItems'] === 'number' ? schema['minItems'] : 1;
  const length = place.depth >= DEEPEST ? Math.min(least, 1) : Math.max(least, 1);
  return Array.from({ length }, () => instance(schema['items'] ?? {}, deeper(place)));
}

function numberIn(schema: JsonObject, place: Place): number {
  const least = Number(schema['minimum'] ?? schema['exclusiveMinimum'] ?? 0);
  const most = Number(schema['maximum'] ?? schema['exclusiveMaximum'] ?? least + 100);
  const step = Number(schema['multipleOf'] ?? 1);
  const steps = Math.max(0, Math.floor((most - least) / step) - 1);
  return least + step * (1 + (steps === 0 ? 0 : numberOf(place) % steps));
}

function stringInstance(schema: JsonObject, place: Place): string {
  const formats: Readonly<Record<string, string>> = {
    'date-time': '2026-01-01T00:00:00Z',
    date: '2026-01-01',
    time: '00:00:00Z',
    email: `${place.fingerprint}@example.com`,
    uri: `https://example.com/${place.fingerprint}`,
    uuid: '00000000-0000-4000-8000-000000000000',
  };
  const format = typeof schema['format'] === 'string' ? formats[schema['format']] : undefined;
  const text = format ?? `simulated ${place.fingerprint}`;
  const most = typeof schema['maxLength'] === 'number' ? schema['maxLength'] : text.length;
  const least = typeof schema['minLength'] === 'number' ? schema['minLength'] : 0;
  return text.slice(0, most).padEnd(least, '.');
}

function choose(options: readonly Json[], place: Place): Json {
  return options[numberOf(place) % Math.max(1, options.length)] ?? null;
}

/** The same for the same document, spread over documents. */
function numberOf({ fingerprint, depth }: Place): number {
  return (Number.parseInt(fingerprint.slice(0, 8), 16) || 0) + depth;
}

function deeper(place: Place): Place {
  return { ...place, depth: place.depth + 1 };
}

function resolveReference(reference: string, root: Json): Json {
  let target: Json | undefined = root;
  for (const part of reference.replace(/^#\/?/, '').split('/')) {
    if (part === '') continue;
    target = isJsonObject(target) ? target[part.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined;
  }
  return target ?? {};
}
