/** Whether an answer is the JSON that was asked for. */
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { usageError } from '../core/errors.js';
import { isJsonObject, type JsonObject } from '../core/json.js';
import type { CheckOutput } from '../engine/call.js';
import type { OutputSettings } from './run-settings.js';

const MOST_PROBLEMS_TOLD = 3;

/**
 * @returns null where any text will do
 * @throws LlmBatchError SCHEMA_INVALID (exit 2)
 */
export function createOutputCheck(check: OutputSettings['check']): CheckOutput | null {
  if (check === null) return null;
  const validate = check.kind === 'json' ? null : compileSchema(check.schema);
  return (output) => {
    const text = withoutFence(output);
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (error) {
      return { problem: `The answer is not JSON: ${(error as Error).message}` };
    }
    if (validate === null) {
      return isJsonObject(value)
        ? { outputJson: JSON.stringify(value) }
        : { problem: 'The answer is JSON, but no object' };
    }
    if (validate(value)) return { outputJson: JSON.stringify(value) };
    return { problem: `The answer does not fit the schema: ${describe(validate.errors ?? [])}` };
  };
}

/** Every error of the schema itself is told before the first call. @throws LlmBatchError SCHEMA_INVALID (exit 2) */
export function compileSchema(schema: JsonObject): ValidateFunction {
  // Formats are advice to the model; `strict` would refuse keywords that other tools read.
  const options = { strict: false, allErrors: true, validateFormats: false } as const;
  const draft2020 = String(schema['$schema'] ?? '').includes('2020-12');
  try {
    return draft2020 ? new Ajv2020(options).compile(schema) : new Ajv(options).compile(schema);
  } catch (error) {
    throw usageError(
      'SCHEMA_INVALID',
      `The JSON Schema can not be used: ${schemaProblem(error as Error)}.`,
      'mend it there; a schema names types such as "string", "number", "object", and lists what must be there in "required"',
    );
  }
}

/** Of all that is wrong the first: the rest mostly says the same of the alternatives. */
function schemaProblem({ message }: Error): string {
  const isInvalid = /^schema is invalid: data(\S*) ([^,]+)/.exec(message);
  if (isInvalid === null) return message;
  const [, place = '', problem = ''] = isInvalid;
  return `${place === '' ? 'the schema' : place} ${problem}`;
}

/** Servers without structured output wrap JSON in a Markdown fence. */
function withoutFence(output: string): string {
  return /^\s*```(?:json)?\s*\n([\s\S]*?)\n?\s*```\s*$/.exec(output)?.[1] ?? output;
}

function describe(errors: readonly ErrorObject[]): string {
  const told = errors
    .slice(0, MOST_PROBLEMS_TOLD)
    .map(
      ({ instancePath, message }) =>
        `${instancePath === '' ? 'the answer' : instancePath} ${message ?? 'is wrong'}`,
    );
  const more = errors.length > MOST_PROBLEMS_TOLD ? [`and ${errors.length - MOST_PROBLEMS_TOLD} more`] : [];
  return [...told, ...more].join('; ');
}
