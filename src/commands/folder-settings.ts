/**
 * The settings that a folder brings with it: `llm-batch.config.json` and `.env`. A folder may have come from
 * anywhere, so what they say of servers, keys and files elsewhere counts only once the user has trusted it.
 */
import { join, resolve } from 'node:path';
import type { CommandContext } from '../app/context.js';
import { type DotEnv, readDotEnv, readNamedDotEnv } from '../config/dot-env.js';
import {
  CONFIG_FILE_NAME,
  isOverruled,
  reachOfConfig,
  readConfigFile,
  type SettingSources,
} from '../config/load.js';
import { type TrustedFact, TrustRecord } from '../config/trust-record.js';
import { usageError } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import { trustOrRefuse } from './confirm.js';

/** One file of the working folder and what there is in it to be trusted. */
export interface FolderFile {
  readonly path: string;
  readonly fact: TrustedFact;
  /** For people: what it says beyond how this program works. */
  readonly says: string;
}

/**
 * @param used settings that the command makes use of
 * @returns what of the settings file counts: all of one that was named or is trusted
 * @throws LlmBatchError CONFIG_UNTRUSTED, CONFIG_* (exit 2)
 */
export async function readTrustedConfig(
  context: CommandContext,
  sources: Omit<SettingSources, 'file'>,
  used: ReadonlySet<string>,
): Promise<JsonObject> {
  const named = sources.flags['config'] ?? sources.environment['LLM_BATCH_CONFIG'] ?? '';
  if (named !== '') {
    const namedPath = resolve(context.workingFolder, String(named));
    return mustBeThere(readConfigFile(namedPath), 'settings file', namedPath, '--config');
  }
  const path = join(context.workingFolder, CONFIG_FILE_NAME);
  const file = readConfigFile(path) ?? {};
  const reach = reachOfConfig(file, context.workingFolder);
  const fact = factOfConfig(path, reach);
  if (new TrustRecord(context.environment).knows(fact)) return file;
  const wanted = Object.keys(reach).filter(
    (name) => used.has(name === 'lanes' ? 'apiKeyEnv' : name) && !isOverruled(name, sources),
  );
  if (wanted.length > 0) {
    const said = describe(Object.fromEntries(wanted.map((name) => [name, reach[name] ?? null])));
    await trustOrRefuse(
      context,
      [fact],
      `${path} names servers, keys or files outside this folder: ${said}. Trust it, as it is now?`,
      usageError(
        'CONFIG_UNTRUSTED',
        `${path} is not trusted, and names servers, keys or files outside this folder: ${said}.`,
        `look at it, then: llm-batch trust; or name it for this call: --config ${CONFIG_FILE_NAME}`,
      ),
    );
    return file;
  }
  const counts = ([name]: [string, unknown]) => !Object.hasOwn(reach, name) || isOverruled(name, sources);
  return Object.fromEntries(Object.entries(file).filter(counts));
}

/** What was read of a file that the user has named. @throws LlmBatchError CONFIG_UNREADABLE (exit 2) where there is none */
function mustBeThere<File>(file: File | null, what: string, path: string, flag: string): File {
  if (file !== null) return file;
  throw usageError('CONFIG_UNREADABLE', `There is no ${what} ${path} (${flag}).`, 'Check the path.');
}

/**
 * `.env` of the working folder. A trusted one adds what the environment does not set; of another the user is asked
 * where it holds a variable that is needed.
 * @param given `--env-file`: the user has named it, so it is used as it is
 * @returns to be called with the names of variables that would be used; throws LlmBatchError CONFIG_UNTRUSTED (exit 2)
 */
export function dotEnvOf(
  context: CommandContext,
  given?: unknown,
): (names: readonly string[]) => Promise<void> {
  const { environment } = context;
  const named = given ?? environment['LLM_BATCH_ENV_FILE'] ?? '';
  const isNamed = named !== '';
  const path = resolve(context.workingFolder, String(named));
  const found = isNamed
    ? mustBeThere(readNamedDotEnv(path), 'file', path, '--env-file')
    : readDotEnv(context.workingFolder);
  const isUnset = (name: string): boolean => (environment[name] ?? '') === '';
  const adopt = ({ variables }: DotEnv): void => {
    for (const [name, value] of Object.entries(variables)) if (isUnset(name)) environment[name] = value;
  };
  if (found !== null && (isNamed || new TrustRecord(environment).knows(found.fact))) adopt(found);
  return async (names) => {
    if (found === null) return;
    const wanted = names.filter((name) => isUnset(name) && (found.variables[name] ?? '') !== '');
    if (wanted.length === 0) return;
    const said = wanted.join(', ');
    await trustOrRefuse(
      context,
      [found.fact],
      `${found.path} holds ${said}. Trust it, as it is now?`,
      usageError(
        'CONFIG_UNTRUSTED',
        `${found.path} is not trusted, and holds ${said}.`,
        `look at it, then: llm-batch trust; or set ${wanted.length === 1 ? 'the variable' : 'the variables'} in the environment`,
      ),
    );
    adopt(found);
  };
}

/** @throws LlmBatchError CONFIG_* (exit 2) */
export function folderFiles(workingFolder: string): readonly FolderFile[] {
  const path = join(workingFolder, CONFIG_FILE_NAME);
  const config = readConfigFile(path);
  const dotEnv = readDotEnv(workingFolder);
  const files: FolderFile[] = [];
  if (config !== null) {
    const reach = reachOfConfig(config, workingFolder);
    files.push({ path, fact: factOfConfig(path, reach), says: describe(reach) });
  }
  if (dotEnv !== null) {
    files.push({ path: dotEnv.path, fact: dotEnv.fact, says: Object.keys(dotEnv.variables).join(', ') });
  }
  return files;
}

/** An edit of what is taken from anybody does not take the trust away. */
function factOfConfig(path: string, reach: JsonObject): TrustedFact {
  return { kind: 'config', name: path, detail: JSON.stringify(reach) };
}

function describe(reach: JsonObject): string {
  return Object.entries(reach)
    .map(([name, value]) => `${name} ${JSON.stringify(value)}`)
    .join(', ');
}
