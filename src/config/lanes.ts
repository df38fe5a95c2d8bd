/** `lanes` in `llm-batch.config.json`: several keys, each with its own endpoint and limits. */
import { usageError } from '../core/errors.js';
import { isJsonObject, type Json } from '../core/json.js';
import { type HeaderTexts, parseHeaderName, parseHeaders } from './header-texts.js';
import { parseCount, parseGiven, parseText } from './values.js';

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

const PARSERS: { readonly [Name in keyof LaneDefinition]: (value: unknown) => LaneDefinition[Name] } = {
  name: parseText,
  apiKeyEnv: parseText,
  baseUrl: parseText,
  apiKeyHeader: parseHeaderName,
  headers: parseHeaders,
  models: parseModels,
  rpm: parseCount,
  tpm: parseCount,
  rpd: parseCount,
  weight: parseCount,
};
/** What a lane is that says nothing but where its key is. */
const UNSAID = {
  ...{ name: '', apiKeyEnv: '', baseUrl: null, apiKeyHeader: null, headers: {}, models: {} },
  ...{ rpm: null, tpm: null, rpd: null, weight: 1 },
};

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
  const unknown = Object.keys(value).find((name) => !Object.hasOwn(PARSERS, name));
  if (unknown !== undefined) {
    throw usageError(
      'LANES_INVALID',
      `${where} has a field '${unknown}' that is not known.`,
      `fields: ${Object.keys(PARSERS).join(', ')}`,
    );
  }
  const said = Object.entries<(value: unknown) => unknown>(PARSERS)
    .filter(([name]) => name === 'apiKeyEnv' || (value[name] ?? null) !== null)
    .map(([name, parse]) => [
      name,
      parseGiven('LANES_INVALID', inFile(`${where}.${name}`), value[name], parse),
    ]);
  const lane: LaneDefinition = { ...UNSAID, ...Object.fromEntries(said) };
  return { ...lane, name: lane.name || lane.apiKeyEnv };
}

function parseModels(value: unknown): Record<string, string> {
  if (isJsonObject(value) && Object.values(value).every((name) => typeof name === 'string' && name !== '')) {
    return value as Record<string, string>;
  }
  throw new Error('an object from model names to model names');
}

function inFile(where: string): string {
  return `'${where}' in llm-batch.config.json`;
}

function invalid(where: string, expected: string, value: Json): Error {
  return usageError(
    'LANES_INVALID',
    `Expected ${inFile(where)} to be ${expected}, got ${JSON.stringify(value)}.`,
  );
}
