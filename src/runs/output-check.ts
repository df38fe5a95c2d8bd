/** Whether an answer is the JSON that was asked for. */
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { usageError } from '../core/errors.js';
import { isJsonObject, type Json, type JsonObject, parseForeignJson, UnusualShape } from '../core/json.js';
import { describeJsonError } from '../documents/json-syntax.js';
import type { CheckOutput } from '../engine/prepared-task.js';
import type { OutputSettings } from './run-settings.js';
import { createTimeLimit, TimeLimitPassed } from './time-limit.js';

const MOST_PROBLEMS_TOLD = 3;

/** Of an answer checked without a time limit, which costs more (0.4 ms) than such a check. */
const SHORT_ANSWER = 64 * 1024;

/** What may take more than linear time: patterns (ajv runs them as they are), recursion. */
const COSTLY_KEYWORDS = ['pattern', 'patternProperties', '$ref', '$dynamicRef', '$recursiveRef'];

/** @throws LlmBatchError SCHEMA_INVALID (exit 2) */
export function createOutputCheck(check: NonNullable<OutputSettings['check']>): CheckOutput {
  const problemOf = check.kind === 'json' ? problemOfObject : createSchemaCheck(check.schema);
  return async (output) => {
    const text = withoutFence(output);
    try {
      const value = parseForeignJson(text);
      const problem = await problemOf(value, text.length);
      return problem === null ? { outputJson: JSON.stringify(value) } : { problem };
    } catch (error) {
      if (error instanceof UnusualShape) return { problem: `The answer cannot be used: ${error.message}` };
      if (error instanceof SyntaxError)
        return { problem: `The answer is not JSON: ${describeJsonError(text)}` };
      throw error;
    }
  };
}

function problemOfObject(value: Json): string | null {
  return isJsonObject(value) ? null : 'The answer is JSON, but no object';
}

function createSchemaCheck(schema: JsonObject): (value: Json, length: number) => Promise<string | null> {
  const findsAll = compileSchema(schema);
  // All that is wrong with a long answer could fill the memory.
  const findsFirst = compileSchema(schema, false);
  const isCostly = COSTLY_KEYWORDS.some((keyword) => JSON.stringify(schema).includes(`"${keyword}":`));
  const limited = createTimeLimit();
  return async (value, length) => {
    const validate = length > SHORT_ANSWER ? findsFirst : findsAll;
    try {
      const fits = isCostly || length > SHORT_ANSWER ? await limited(() => validate(value)) : validate(value);
      return fits ? null : `The answer does not fit the schema: ${describe(validate.errors ?? [])}`;
    } catch (error) {
      if (!(error instanceof TimeLimitPassed)) throw error;
      return `The answer could not be checked against the schema: ${error.message}`;
    }
  };
}

/** Every error of the schema itself is told before the first call. @throws LlmBatchError SCHEMA_INVALID (exit 2) */
export function compileSchema(schema: JsonObject, allErrors = true): ValidateFunction {
  // Formats are advice to the model; `strict` would refuse keywords that other tools read.
  const options = { strict: false, allErrors, validateFormats: false } as const;
  const draft2020 = String(schema['$schema'] ?? '').includes('2020-12');
  try {
    return draft2020 ? new Ajv2020(options).compile(schema) : new Ajv(options).compile(schema);
  } catch (error) {
    throw usageError(
      'SCHEMA_INVALID',
      `The JSON Schema cannot be used: ${schemaProblem(error as Error)}.`,
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

const FENCE = '```';

/** Servers without structured output wrap JSON in a Markdown fence. Without a pattern: answers may be hostile. */
function withoutFence(output: string): string {
  const text = output.trim();
  const lineEnd = text.indexOf('\n');
  if (!text.startsWith(FENCE) || !text.endsWith(FENCE) || lineEnd === -1) return output;
  const language = text.slice(FENCE.length, lineEnd).trim();
  return language === '' || language === 'json' ? text.slice(lineEnd + 1, -FENCE.length) : output;
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
