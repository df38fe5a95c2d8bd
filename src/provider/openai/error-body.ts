/** Error bodies of every shape, brought into one: the object that OpenAI has under `error`. */
import { isJsonObject, type Json, type JsonObject, parseForeignJson } from '../../core/json.js';

/** Beyond this nothing of an error page is looked at. */
const READ_LENGTH = 20_000;

/**
 * Finds the error object in the body of a refused call.
 *
 * Understands `{error: {…}}` (OpenAI), `{error: "text"}`, `[{error: {…}}]` (Gemini), `{detail: …}` (FastAPI),
 * flat objects (`{object: "error", message}`, `{message, code}`, `{statusCode, message}`), `{errors: […]}`,
 * HTML and plain text. The result has a `message` whenever the body held any text, and keeps `code`, `type`, `param`
 * and whatever else stood beside them.
 */
export function readErrorObject(bodyText: string): JsonObject {
  const body = parseJson(bodyText);
  return body === undefined ? { message: readText(bodyText) } : errorObjectOf(body);
}

/** The same for a body that is parsed already. */
export function errorObjectOf(body: Json): JsonObject {
  if (Array.isArray(body)) return body.length === 0 ? {} : errorObjectOf(body[0] as Json);
  if (!isJsonObject(body)) return typeof body === 'string' ? { message: body } : {};

  const { error, errors, detail, ...outer } = body;
  if (isJsonObject(error)) {
    return 'message' in error ? withMessage(error) : withMessage({ ...pickOuter(outer), ...error });
  }
  if (typeof error === 'string' && error !== '') {
    const more = typeof outer['message'] === 'string' ? `${error}: ${outer['message']}` : error;
    return { ...outer, message: more };
  }
  if (detail !== undefined && detail !== null) return { ...outer, message: readDetail(detail) };
  if (Array.isArray(errors) && errors.length > 0) return { ...outer, ...errorObjectOf(errors[0] as Json) };
  return withMessage(outer);
}

function pickOuter(outer: JsonObject): JsonObject {
  const { message, code, type } = outer;
  return {
    ...(message !== undefined && { message }),
    ...(code !== undefined && { code }),
    ...(type !== undefined && { type }),
  };
}

function withMessage(error: JsonObject): JsonObject {
  const { message } = error;
  if (typeof message === 'string' && message !== '') return error;
  if (isJsonObject(message) && message['detail'] !== undefined) {
    return { ...error, message: readDetail(message['detail']) };
  }
  if (typeof message === 'object' && message !== null) return { ...error, message: JSON.stringify(message) };
  for (const name of ['Message', 'msg', 'error_msg', 'error_description', 'title']) {
    const text = error[name];
    if (typeof text === 'string' && text !== '') return { ...error, message: text };
  }
  return error;
}

/** FastAPI: a text, or a list of `{loc: ["body", "messages"], msg}`. */
function readDetail(detail: Json): string {
  if (typeof detail === 'string') return detail;
  if (isJsonObject(detail)) {
    const inner = errorObjectOf(detail)['message'];
    return typeof inner === 'string' ? inner : JSON.stringify(detail);
  }
  if (!Array.isArray(detail)) return String(detail);
  return detail
    .slice(0, 5)
    .map((entry) => {
      if (!isJsonObject(entry)) return String(entry);
      const path = Array.isArray(entry['loc']) ? `${entry['loc'].join('.')}: ` : '';
      return `${path}${typeof entry['msg'] === 'string' ? entry['msg'] : JSON.stringify(entry)}`;
    })
    .join('; ');
}

/** @returns undefined for what is no JSON, or too much of it */
export function parseJson(text: string): Json | undefined {
  try {
    return parseForeignJson(text);
  } catch {
    return undefined;
  }
}

/** True for a page meant for a browser: a gateway, a firewall or a wrong address answered. */
export function looksLikeHtml(text: string): boolean {
  return /^\s*<(?:!doctype\b|html\b|head\b|body\b|\?xml\b)/i.test(text.slice(0, 500));
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&nbsp;': ' ',
};

/** What a person would read first in a text that is not JSON: of HTML its title, heading or first words. */
export function readText(text: string): string {
  const start = text.slice(0, READ_LENGTH);
  if (!looksLikeHtml(start)) return start.trim();
  const title = /<title[^<>]*>([^<]+)/i.exec(start)?.[1] ?? /<h1[^<>]*>([^<]+)/i.exec(start)?.[1];
  const words =
    title ?? start.replace(/<(script|style)\b[\s\S]*?(?:<\/\1>|$)/gi, ' ').replace(/<[^<>]*>/g, ' ');
  const plain = words.replace(/&(?:amp|lt|gt|quot|#39|nbsp);/g, (entity) => ENTITIES[entity] ?? ' ');
  return `an HTML page: ${plain.replace(/\s+/g, ' ').trim()}`;
}
