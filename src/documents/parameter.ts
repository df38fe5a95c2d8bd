/** Request parameters from the command line: `--param temperature=0.2`. */
import { usageError } from '../core/errors.js';
import { findField } from '../core/field.js';
import type { Json, JsonObject } from '../core/json.js';
import type { Endpoint } from '../endpoints/endpoint.js';

export interface Parameter {
  readonly name: string;
  readonly value: Json;
}

/**
 * Reads one `name=value`. A value that is JSON is taken as that, any other as a string.
 * @throws LlmBatchError (exit 2) for what is no parameter or what a run cannot honour
 */
export function parseParameter(text: string): Parameter {
  const equals = text.indexOf('=');
  const name = text.slice(0, Math.max(equals, 0)).trim();
  if (name === '') {
    throw usageError(
      'PARAMETER_SYNTAX',
      `--param ${text} is not name=value.`,
      'Write for example --param temperature=0.2.',
    );
  }
  const value = parseValue(name, text.slice(equals + 1));
  refuse(name);
  return { name, value };
}

/** Several `name=value`; the last word on a name counts. @throws LlmBatchError (exit 2) as `parseParameter` */
export function parseParameters(texts: readonly string[]): JsonObject {
  return Object.fromEntries(
    texts.map((text) => parseParameter(text)).map(({ name, value }) => [name, value]),
  );
}

function parseValue(name: string, text: string): Json {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    if (!/^\s*["{[]/.test(text)) return text;
    throw usageError(
      'PARAMETER_SYNTAX',
      `--param ${name} begins like JSON but is not: ${text.slice(0, 60)}`,
      `Quote it for the shell, for example --param '${name}={"key": "value"}'.`,
    );
  }
  if (isInexact(value) || findField(value, isInexact) !== null) {
    throw usageError(
      'PARAMETER_INEXACT',
      `--param ${name} holds a whole number beyond 2^53, which would be rounded.`,
      `Write it as a string: --param '${name}="…"'.`,
    );
  }
  return value;
}

function isInexact(value: unknown): boolean {
  return typeof value === 'number' && (!Number.isFinite(value) || Math.abs(value) > Number.MAX_SAFE_INTEGER);
}

function refuse(name: string): void {
  if (name === 'model') {
    throw usageError('PARAMETER_REFUSED', '--param cannot set the model.', 'Use --model.');
  }
  if (name === 'messages' || name === 'prompt' || name === 'input') {
    throw usageError(
      'PARAMETER_REFUSED',
      `--param cannot set ${name}: it comes from each document.`,
      'Use --prompt and --system.',
    );
  }
  if (name === '__proto__') {
    throw usageError('PARAMETER_REFUSED', '--param __proto__ is no request parameter.', 'Leave it out.');
  }
}

/** @throws LlmBatchError PARAMETER_REFUSED (exit 2) for a value that no request of this endpoint may carry */
export function checkParameters(parameters: JsonObject, endpoint: Endpoint): void {
  for (const [name, value] of Object.entries(parameters)) {
    const reason = endpoint.refusedValue(name, value);
    if (reason === null) continue;
    throw usageError(
      'PARAMETER_REFUSED',
      `--param ${name}=${JSON.stringify(value)} cannot be sent: ${reason}.`,
      'Leave it out.',
    );
  }
}
