/** Where a setting's value comes from: flag, then environment, then `llm-batch.config.json`, then default. */
import { resolve } from 'node:path';
import { usageError } from '../core/errors.js';
import { isJsonObject, type Json, type JsonObject, parseForeignJson } from '../core/json.js';
import { familiarSetting, nearest, settingOfKey } from './familiar-names.js';
import { isInside } from './inside.js';
import { type LaneDefinition, parseLanes } from './lanes.js';
import { SETTINGS, type Settings } from './settings.js';
import { readSmallFile } from './small-file.js';
import { parseGiven } from './values.js';

export const CONFIG_FILE_NAME = 'llm-batch.config.json';
const LANES = 'lanes';
/** They say where settings are. */
const ONLY_FLAGS: readonly string[] = ['config', 'envFile'];
/** At least two letters, so that a Windows drive is a path. */
const URL_SCHEME = /^[a-z][a-z0-9+.-]+:/i;

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
  for (const { name, key, flags, environment, parse, initial } of SETTINGS) {
    const take = (where: string, value: unknown): void => {
      values[name] = parseGiven('SETTING_INVALID', where, value, parse);
    };
    if (sources.flags[name] !== undefined) {
      given.add(name);
      take(flags.split(' ')[0] ?? flags, sources.flags[name]);
    } else if ((sources.environment[environment] ?? '') !== '') {
      take(`environment variable ${environment}`, sources.environment[environment]);
    } else if (Object.hasOwn(sources.file, name)) {
      take(`'${key}' in ${CONFIG_FILE_NAME}`, sources.file[name]);
    } else values[name] = initial;
  }
  const lanes = parseLanes(sources.file[LANES]);
  const settings = values as unknown as Settings;
  return given.has('apiKeyEnv') || given.has('baseUrl')
    ? { settings, given, lanes: null, unusedLanes: lanes }
    : { settings, given, lanes, unusedLanes: null };
}

/** Whether a flag or the environment says it already, so that the file is not asked. */
export function isOverruled(name: string, { flags, environment }: Omit<SettingSources, 'file'>): boolean {
  if (name === LANES) return flags['apiKeyEnv'] !== undefined || flags['baseUrl'] !== undefined;
  const variable = SETTINGS.find((setting) => setting.name === name)?.environment;
  return flags[name] !== undefined || (variable !== undefined && (environment[variable] ?? '') !== '');
}

/**
 * What of a configuration leads out of its folder, to a server or to a file: to be taken only from a file that the
 * user has named or trusted.
 * @param folder the working folder, where relative paths start
 */
export function reachOfConfig(file: JsonObject, folder: string): JsonObject {
  const reaches = (name: string, value: Json | undefined): boolean => {
    if (name === LANES) return true;
    const kind = SETTINGS.find((setting) => setting.name === name)?.reaches;
    if (kind !== 'path' || typeof value !== 'string') return kind !== undefined;
    return URL_SCHEME.test(value) || !isInside(folder, resolve(folder, value));
  };
  return Object.fromEntries(Object.entries(file).filter(([name, value]) => reaches(name, value)));
}

/**
 * Reads a settings file; null where there is none.
 * @throws LlmBatchError (exit 2) when it is not JSON, not an object or names an unknown setting
 */
export function readConfigFile(path: string): JsonObject | null {
  const text = readSmallFile(path);
  if (text === null) return null;
  const refusal = (problem: string, hint: string) =>
    usageError('CONFIG_NOT_JSON', `${path} ${problem}.`, hint);
  let config: unknown;
  try {
    config = parseForeignJson(text);
  } catch (error) {
    const problem = `is not JSON: ${(error as Error).message}`;
    throw refusal(problem, 'Mend it, such as {"model": "gpt-4o-mini", "rpm": 500}.');
  }
  if (isJsonObject(config)) return canonical(config, path);
  throw refusal('does not hold a JSON object', 'Write settings into it, such as {"rpm": 500}.');
}

/** Under the settings' own names, whichever way they are written. @throws LlmBatchError (exit 2) CONFIG_UNKNOWN_SETTING */
function canonical(config: JsonObject, path: string): JsonObject {
  const found: JsonObject = {};
  for (const [key, value] of Object.entries(config)) {
    const setting = key === LANES ? null : settingOfKey(key);
    if (key !== LANES && (setting === null || ONLY_FLAGS.includes(setting.name))) throw unknownKey(key, path);
    const name = setting?.name ?? key;
    if (Object.hasOwn(found, name)) {
      throw usageError('CONFIG_TWICE', `${path} says '${key}' twice, in two spellings.`, 'Keep one of them.');
    }
    found[name] = value;
  }
  return found;
}

function unknownKey(key: string, path: string): Error {
  const known = [
    ...SETTINGS.filter(({ name }) => !ONLY_FLAGS.includes(name)).map(({ key: known }) => known),
    LANES,
  ];
  const familiar = familiarSetting(key);
  const meant = familiar === null ? nearest(key, known) : familiar.key;
  return usageError(
    'CONFIG_UNKNOWN_SETTING',
    `${path} has a setting '${key}' that is not known.`,
    meant === null ? `known are ${known.join(', ')}` : `did you mean '${meant}'?`,
  );
}
