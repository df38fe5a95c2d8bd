/** `--schema` and `--json-mode`: what is asked of the model, and what each answer is checked against. */
import { basename, resolve } from 'node:path';
import type { Settings } from '../config/settings.js';
import { usageError } from '../core/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../core/json.js';
import { type RequestSettings, runEndpointOf } from '../documents/request.js';
import { type OutputFormat, structuredOutput } from '../endpoints/structured-output.js';
import type { OutputSettings } from '../runs/run-settings.js';
import { shellWord } from '../ui/next-command.js';
import { readNamedFile } from './named-file.js';

export interface WantedOutput {
  readonly check: NonNullable<OutputSettings['check']>;
  readonly format: OutputFormat;
}

/** @throws LlmBatchError (exit 2) for a schema that cannot be read or used, or two formats at once */
export async function wantedOutput(settings: Settings, workingFolder: string): Promise<WantedOutput | null> {
  const { schema: file, jsonMode, repair } = settings;
  if (file !== null && jsonMode) {
    throw usageError('OUTPUT_TWICE', '--schema and --json-mode were both given.', 'keep one of them');
  }
  if (repair && file === null && !jsonMode) {
    throw usageError(
      'REPAIR_ALONE',
      '--repair needs --schema or --json-mode: any text fits otherwise.',
      'add one of them, or leave --repair out',
    );
  }
  if (file === null) return jsonMode ? { check: { kind: 'json' }, format: 'json_object' } : null;
  const path = resolve(workingFolder, file);
  const schema = await readSchema(path);
  const { compileSchema } = await import('../runs/output-check.js');
  compileSchema(schema);
  const title =
    typeof schema['title'] === 'string' ? schema['title'] : basename(path).replace(/\.[^.]+$/, '');
  return { check: { kind: 'schema', schema }, format: structuredOutput(schema, title) };
}

async function readSchema(path: string): Promise<JsonObject> {
  const text = await readNamedFile(path, 'schema', 'SCHEMA_UNREADABLE');
  const refusal = (problem: string, hint: string) =>
    usageError('SCHEMA_UNREADABLE', `The schema ${path} is ${problem}.`, hint);
  let schema: unknown;
  try {
    schema = JSON.parse(text);
  } catch (error) {
    const hint = `mend it; jq . ${shellWord(path)} shows where it breaks off`;
    throw refusal(`not JSON: ${(error as Error).message}`, hint);
  }
  if (isJsonObject(schema)) return schema;
  throw refusal(
    'no JSON object',
    'give a JSON Schema such as {"type": "object", "properties": {"label": {"type": "string"}}, "required": ["label"]}',
  );
}

/** @throws LlmBatchError ENDPOINT_LACKS (exit 2) for settings that the endpoint has no place for */
export function checkEndpoint({ schema, jsonMode, repair }: Settings, request: RequestSettings): void {
  const { outputParameters, withMistake, placeFile, takesSystemMessage } = runEndpointOf(request);
  const asksFor: readonly [flag: string, isAsked: boolean, isThere: boolean][] = [
    ['--schema', schema !== null, outputParameters !== null],
    ['--json-mode', jsonMode, outputParameters !== null],
    ['--repair', repair, withMistake !== null],
    ['--system', request.systemTemplate !== null, takesSystemMessage],
    ['{{image …}} in --prompt', /\{\{\s*image\s/.test(request.promptTemplate ?? ''), placeFile !== null],
  ];
  const lacking = asksFor.find(([, isAsked, isThere]) => isAsked && !isThere);
  if (lacking === undefined) return;
  throw usageError(
    'ENDPOINT_LACKS',
    `${lacking[0]} means nothing to --endpoint ${request.endpoint}.`,
    'leave one of the two out',
  );
}

/** @throws LlmBatchError (exit 2) when the request would contradict itself or be refused by every server */
export function askFor({ format }: WantedOutput, request: RequestSettings): RequestSettings {
  const asking = runEndpointOf(request).outputParameters?.(format) ?? {};
  const parameters = { ...request.parameters };
  for (const [name, value] of Object.entries(asking)) {
    const together = joined(parameters[name], value);
    if (together === null) {
      throw usageError('OUTPUT_TWICE', `--param ${name} contradicts --schema and --json-mode.`, 'keep one');
    }
    parameters[name] = together;
  }
  const templates = [request.promptTemplate, request.systemTemplate].filter((text) => text !== null);
  if (format === 'json_object' && templates.length > 0 && !templates.some((text) => /json/i.test(text))) {
    throw usageError(
      'JSON_MODE_WORD',
      'JSON mode needs the word "JSON" in the prompt or the system message; servers refuse the request without it.',
      "say what JSON to write, e.g. --system 'Answer with a JSON object.'",
    );
  }
  return { ...request, parameters };
}

/** Of two objects that say different things one that says both; null where they contradict each other. */
function joined(given: Json | undefined, asking: Json): Json | null {
  if (given === undefined) return asking;
  if (!isJsonObject(given) || !isJsonObject(asking)) return null;
  return Object.keys(asking).some((name) => Object.hasOwn(given, name)) ? null : { ...given, ...asking };
}
