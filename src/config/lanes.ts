/** `lanes` in `llm-batch.config.json`: several keys, each with its own endpoint and limits. */
import { usageError } from '../core/errors.js';
import { isJsonObject, type Json } from '../core/json.js';
import { type HeaderTexts, parseHeaderName, parseHeaders } from './header-texts.js';
import { parseCount, parseText } from './values.js';

/** One lane as the user wrote it; null where it says nothing and the run's own setting holds. */
export interface LaneDefinition {
  readonly name: string;
  /** Environment variable that holds the key. */
  readonly apiKeyEnv: string;
  readonly baseUrl: string | null;
  /** Header that carries the key. */
  readonly apiKeyHeader: string | null;
  /** Besides those of the run. */
  readonly headers: HeaderTexts;
  /** What this endpoint calls a model: name in the requests → name to send. */
  readonly models: Readonly<Record<string, string>>;
  readonly rpm: number | null;
  readonly tpm: number | null;
  readonly rpd: number | null;
  /** Share of the work while several lanes are free; 1 where nothing is said. */
  readonly weight: number;
}

const FIELDS = [
  'name',
  'apiKeyEnv',
  'baseUrl',
  'apiKeyHeader',
  'headers',
  'models',
  'rpm',
  'tpm',
  'rpd',
  'weight',
];

/** @throws LlmBatchError LANES_INVALID (exit 2) naming the lane and the field */
export function parseLanes(value: Json | undefined): readonly LaneDefinition[] | null {
  if (value === undefined || value === null) return null;
  if (!Array.isArray(value) || value.length === 0)
    throw invalid('lanes', 'a list of at least one lane', value);
  const lanes = value.map((lane, index) => parseLane(lane, `lanes[${index}]`));
  const names = lanes.map((lane) => lane.name);
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined) throw invalid('lanes', 'lanes with names of their own', repeated);
  return lanes;
}

function parseLane(value: Json, where: string): LaneDefinition {
  if (!isJsonObject(value)) throw invalid(where, 'an object', value);
  const unknown = Object.keys(value).find((name) => !FIELDS.includes(name));
  if (unknown !== undefined) {
    throw usageError(
      'LANES_INVALID',
      `${where} has a field '${unknown}' that is not known.`,
      `fields: ${FIELDS.join(', ')}`,
    );
  }
  const apiKeyEnv = field(where, 'apiKeyEnv', value['apiKeyEnv'], parseText);
  const baseUrl = optional(where, 'baseUrl', value['baseUrl'], parseText);
  return {
    name: optional(where, 'name', value['name'], parseText) ?? apiKeyEnv,
    apiKeyEnv,
    baseUrl,
    apiKeyHeader: optional(where, 'apiKeyHeader', value['apiKeyHeader'], parseHeaderName),
    headers: optional(where, 'headers', value['headers'], parseHeaders) ?? {},
    models: optional(where, 'models', value['models'], parseModels) ?? {},
    rpm: optional(where, 'rpm', value['rpm'], parseCount),
    tpm: optional(where, 'tpm', value['tpm'], parseCount),
    rpd: optional(where, 'rpd', value['rpd'], parseCount),
    weight: optional(where, 'weight', value['weight'], parseCount) ?? 1,
  };
}

function parseModels(value: unknown): Record<string, string> {
  if (isJsonObject(value) && Object.values(value).every((name) => typeof name === 'string' && name !== '')) {
    return value as Record<string, string>;
  }
  throw new Error('an object from model names to model names');
}

function optional<Value>(
  where: string,
  name: string,
  value: Json | undefined,
  parse: (value: unknown) => Value,
): Value | null {
  return value === undefined || value === null ? null : field(where, name, value, parse);
}

function field<Value>(
  where: string,
  name: string,
  value: Json | undefined,
  parse: (value: unknown) => Value,
): Value {
  try {
    return parse(value);
  } catch (error) {
    throw invalid(`${where}.${name}`, (error as Error).message, value);
  }
}

function invalid(where: string, expected: string, value: Json | undefined) {
  return usageError(
    'LANES_INVALID',
    `Expected '${where}' in llm-batch.config.json to be ${expected}, got ${JSON.stringify(value) ?? 'nothing'}.`,
  );
}
