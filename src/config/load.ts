/** Where a setting's value comes from: flag, then environment, then `llm-batch.config.json`, then default. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { usageError } from '../core/errors.js';
import { isJsonObject, type JsonObject, parseForeignJson } from '../core/json.js';
import { type LaneDefinition, parseLanes } from './lanes.js';
import { SETTINGS, type SettingDefinition, type Settings } from './settings.js';

export const CONFIG_FILE_NAME = 'llm-batch.config.json';

export interface SettingSources {
  /** Values given on the command line, by setting name; absent where no flag was given. */
  readonly flags: Readonly<Record<string, unknown>>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly file: JsonObject;
}

export interface ResolvedSettings {
  readonly settings: Settings;
  /** Names of settings that were given as flags. */
  readonly given: ReadonlySet<keyof Settings>;
  /** Lanes of the config file; null where it names none, or where a flag names keys or an address. */
  readonly lanes: readonly LaneDefinition[] | null;
  /** Those that the config file does name, but whose place such a flag takes. */
  readonly unusedLanes: readonly LaneDefinition[] | null;
}

/**
 * @throws LlmBatchError (exit 2) naming the flag, variable or file key of the first bad value
 */
export function resolveSettings(sources: SettingSources): ResolvedSettings {
  const given = new Set<keyof Settings>();
  const values: Partial<Record<keyof Settings, unknown>> = {};
  for (const definition of SETTINGS) {
    const { name, environment } = definition;
    const flagValue = sources.flags[name];
    const environmentValue = sources.environment[environment];
    if (flagValue !== undefined) {
      given.add(name);
      values[name] = parsed(definition, flagValue, flagName(definition));
    } else if (environmentValue !== undefined && environmentValue !== '') {
      values[name] = parsed(definition, environmentValue, `environment variable ${environment}`);
    } else if (Object.hasOwn(sources.file, name)) {
      values[name] = parsed(definition, sources.file[name], `'${name}' in ${CONFIG_FILE_NAME}`);
    } else {
      values[name] = definition.initial;
    }
  }
  const lanes = parseLanes(sources.file['lanes']);
  const settings = values as unknown as Settings;
  return given.has('apiKeyEnv') || given.has('baseUrl')
    ? { settings, given, lanes: null, unusedLanes: lanes }
    : { settings, given, lanes, unusedLanes: null };
}

/**
 * Reads `llm-batch.config.json` of a folder; empty where there is none.
 * @throws LlmBatchError (exit 2) when it is not JSON, not an object or names an unknown setting
 */
export function readConfigFile(folder: string): JsonObject {
  const path = join(folder, CONFIG_FILE_NAME);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw usageError(
      'CONFIG_UNREADABLE',
      `${path} can not be read: ${(error as Error).message}.`,
      'It may hold settings for this folder: change its permissions, or move it away.',
    );
  }
  let config: unknown;
  try {
    config = parseForeignJson(text);
  } catch (error) {
    throw usageError(
      'CONFIG_NOT_JSON',
      `${path} is not JSON: ${(error as Error).message}.`,
      `Mend it, such as {"model": "gpt-4o-mini", "rpm": 500}.`,
    );
  }
  if (!isJsonObject(config))
    throw usageError(
      'CONFIG_NOT_JSON',
      `${path} does not hold a JSON object.`,
      'Write settings into it, such as {"rpm": 500}.',
    );
  const known = [...SETTINGS.map((setting) => setting.name as string), 'lanes'];
  for (const name of Object.keys(config)) {
    if (known.includes(name)) continue;
    throw usageError(
      'CONFIG_UNKNOWN_SETTING',
      `${path} has a setting '${name}' that is not known.`,
      `known are ${known.join(', ')}`,
    );
  }
  return config;
}

export function flagName(definition: SettingDefinition): string {
  return definition.flags.split(' ')[0] ?? definition.flags;
}

function parsed(definition: SettingDefinition, value: unknown, where: string): unknown {
  try {
    return definition.parse(value);
  } catch (error) {
    throw usageError(
      'SETTING_INVALID',
      `Expected ${where} to be ${(error as Error).message}, got ${JSON.stringify(value)}.`,
    );
  }
}
