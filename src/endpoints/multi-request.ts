/**
 * Several requests in one call, to servers that have an address for that, whatever endpoint the requests are of:
 * `{model, batch: [{id, messages, …}]}` → `{results: [{id, …}]}`. A result is told by its id, never by where it stands.
 */
import { isJsonObject, type Json, type JsonObject } from '../core/json.js';
import type { AnswerBody, AskedFor, Endpoint, PartReading } from './endpoint.js';
import { badOutput } from './readings.js';

/** @param bodies of one model */
export function joinBodies(bodies: readonly string[]): string {
  const parsed = bodies.map((body) => JSON.parse(body) as JsonObject);
  const batch = parsed.map(({ model: _model, ...rest }, index) => ({ ...rest, id: idOf(index) }));
  return JSON.stringify({ model: parsed[0]?.['model'] ?? null, batch });
}

/** Of this call alone: documents' own ids may be equal. */
function idOf(index: number): string {
  return `request-${index + 1}`;
}

/** What stands in an answer for each request, in their order, or what is wrong. */
export type ItemsInOrder = readonly (JsonObject | string)[];

/** @returns null where the answer is none of this form */
export function itemsOf(body: JsonObject, requests: number): ItemsInOrder | null {
  const results = body['results'] ?? body['responses'];
  if (!Array.isArray(results)) return null;
  const found = new Map<string, JsonObject[]>();
  for (const result of results) {
    const id = isJsonObject(result) ? (result['id'] ?? result['custom_id']) : undefined;
    if (!isJsonObject(result) || typeof id !== 'string') continue;
    found.set(id, [...(found.get(id) ?? []), result]);
  }
  return Array.from({ length: requests }, (_, index) => {
    const [item, another] = found.get(idOf(index)) ?? [];
    if (item === undefined) return 'The answer has no result for this document';
    return another === undefined ? bodyOf(item) : 'The answer has two results for this document';
  });
}

/** Some servers wrap the body as lines of Batch API files do; some give the text alone. */
function bodyOf(item: JsonObject): JsonObject {
  const outer = isJsonObject(item['response']) ? item['response'] : item;
  const body = isJsonObject(outer['body']) ? outer['body'] : outer;
  if (hasError(item)) return item;
  const { content, text, message, finish_reason: finishReason = 'stop', ...rest } = body;
  const said = content ?? text ?? message;
  if (said === undefined || Object.hasOwn(body, 'choices') || hasError(body)) return body;
  const answer = isJsonObject(said) ? said : { role: 'assistant', content: said };
  // As chat completions and completions know it.
  const choice = { index: 0, message: answer, text: said, finish_reason: finishReason };
  return { ...rest, choices: [choice] };
}

function hasError({ error }: JsonObject): boolean {
  return isJsonObject(error) || (typeof error === 'string' && error !== '');
}

/** The answer's envelope, with what only its items say of model and usage. */
export function envelopeOf(body: JsonObject, items: ItemsInOrder): JsonObject {
  const bodies = items.filter((item) => typeof item !== 'string');
  const model = body['model'] ?? bodies.find((item) => typeof item['model'] === 'string')?.['model'];
  const usage = body['usage'] ?? bodies.reduce<Json>((sum, item) => added(sum, item['usage']), null);
  return { ...body, usage, ...(model !== undefined && { model }) };
}

/** Numbers are added up, whatever they are called. */
function added(sum: Json, more: Json | undefined): Json {
  if (typeof more === 'number') return (typeof sum === 'number' ? sum : 0) + more;
  if (!isJsonObject(more)) return sum;
  const before = isJsonObject(sum) ? sum : {};
  const entries = Object.entries(more).map(
    ([name, value]) =>
      [name, added(Object.hasOwn(before, name) ? (before[name] as Json) : null, value)] as const,
  );
  return { ...before, ...Object.fromEntries(entries) };
}

/** Reads each item as its endpoint reads an answer. Never throws, whatever came. */
export function readItems(
  endpoint: Endpoint,
  items: ItemsInOrder,
  { isUtf8 }: Pick<AnswerBody, 'isUtf8'>,
  asked: AskedFor,
): readonly PartReading[] {
  const { model = null, batch } = JSON.parse(asked.bodyJson) as JsonObject & { batch: JsonObject[] };
  return items.map((item, index): PartReading => {
    if (typeof item === 'string') return badOutput(item);
    if (hasError(item)) return { ok: false, errorIn: item };
    const { id: _id, ...request } = batch[index] as JsonObject;
    const answer = { body: item, content: JSON.stringify(item), isUtf8, usage: null };
    const read = endpoint.readAnswer(answer, { bodyJson: JSON.stringify({ ...request, model }), parts: 1 });
    return 'ok' in read ? read : (read[0] ?? badOutput('The answer has no result for this document'));
  });
}
