/** Looks at a store and at the place where it is, or would be. */
import { accessSync, constants, existsSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '../../core/clock.js';
import { LlmBatchError } from '../../core/errors.js';
import { fileSystemOf } from '../../store/file-system.js';
import type { StoreCondition } from '../../store/maintenance.js';
import { openStore } from '../../store/open.js';
import type { Store } from '../../store/store.js';
import { findSalvage } from '../salvage.js';
import { type Diagnosis, fault, faultOf, ok, warning } from './diagnose.js';

export interface StoreLook {
  /** As the user names it. */
  readonly url: string;
  /** Its file, absolute. */
  readonly path: string;
  readonly clock: Clock;
  /** Numeric id of the user; null where the system has none. */
  readonly userId: number | null;
  /** Injected where a test cannot fill a disk or mount what it likes. */
  readonly fileSystem?: typeof fileSystemOf;
}

interface InsideLook {
  /** For people. */
  readonly place: string;
  readonly salvagePath: string;
  /** What is said of data in which nothing was found. */
  readonly sound: string;
}

/** A store on a server. */
export interface ServerLook extends Omit<InsideLook, 'sound'>, Pick<StoreLook, 'url' | 'clock'> {
  readonly schemaName: string;
}

const GIGABYTE = 1_000_000_000;
const MOST_DIFFERENCES_TOLD = 5;

export async function* diagnoseStore(look: StoreLook): AsyncGenerator<Diagnosis> {
  const folder = dirname(look.path);
  if (!existsSync(folder)) {
    yield fault('store_file', `The folder ${folder} is not there.`, { code: 'STORE_FOLDER_MISSING' });
    return;
  }
  yield* lookAtPlace(look);
  const file = statSync(look.path, { throwIfNoEntry: false });
  if (file === undefined || (file.isFile() && file.size === 0)) {
    yield mayWrite(folder)
      ? ok('store_file', `There is no store at ${look.path} yet; the first \`llm-batch run\` makes it.`)
      : fault(
          'store_file',
          `There is no store at ${look.path} yet, and this user may not write to ${folder}.`,
          { code: 'STORE_FOLDER_PERMISSIONS' },
        );
    return;
  }
  yield lookAtFile(look, folder, file);
  const { url, path, clock } = look;
  try {
    const store = await openStore(url, { mode: 'read', clock });
    const sound = 'checked, all sound.';
    yield* lookInside(store, { place: path, salvagePath: `${path}.salvage.jsonl`, sound });
  } catch (error) {
    yield faultOf(isOfSchema(error) ? 'schema' : 'integrity', error);
  }
}

export async function* diagnoseServerStore(look: ServerLook): AsyncGenerator<Diagnosis> {
  const { url, schemaName, place, clock } = look;
  let store: Store;
  try {
    store = await openStore(url, { mode: 'read', clock, schemaName });
  } catch (error) {
    yield error instanceof LlmBatchError && error.code === 'STORE_MISSING'
      ? ok('store_server', `There is no store at ${place} yet; the first \`llm-batch run\` makes it.`)
      : faultOf(isOfSchema(error) ? 'schema' : 'store_server', error);
    return;
  }
  yield ok('store_server', `${place} answers.`);
  yield* lookInside(store, { ...look, sound: 'on a server that checks its pages itself.' });
}

function* lookAtPlace({ path, fileSystem = fileSystemOf }: StoreLook): Generator<Diagnosis> {
  const { name, network, uncertain, freeBytes } = fileSystem(path);
  const folder = dirname(path);
  if (network) {
    yield fault(
      'file_system',
      `${folder} is on a network file system (${name}), where an SQLite store is not safe.`,
      { code: 'STORE_NETWORK_FILE_SYSTEM' },
    );
  } else if (uncertain) {
    yield warning('file_system', `${folder} is on a ${name} file system, which may be on another machine.`, {
      code: 'STORE_MAYBE_REMOTE',
    });
  } else {
    yield ok(
      'file_system',
      name === 'unknown' ? 'Of no kind that is known to be unsafe.' : `${name}, local.`,
    );
  }
  const logBytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  const free = `${bytes(freeBytes)} free at ${folder}`;
  yield freeBytes < Math.max(GIGABYTE, 2 * logBytes)
    ? warning(
        'disk_space',
        logBytes > GIGABYTE / 2 ? `${free}, and the store's log has ${bytes(logBytes)}.` : `${free}.`,
        { code: 'DISK_NEARLY_FULL' },
      )
    : ok('disk_space', `${free}.`);
}

function lookAtFile({ path, userId }: StoreLook, folder: string, file: Stats): Diagnosis {
  if (!file.isFile()) {
    return fault('store_file', `${path} is no file.`, { code: 'STORE_NO_FILE' });
  }
  if (!may(path, constants.R_OK | constants.W_OK) || !mayWrite(folder)) {
    return fault(
      'store_file',
      `${path} cannot be written: the file, its folder or the disk is read-only for this user.`,
      { code: 'STORE_FILE_PERMISSIONS' },
    );
  }
  if (userId !== null && file.uid !== userId) {
    return warning(
      'store_file',
      `${path} belongs to another user (number ${file.uid}).`,
      'Run as that user, or make it yours: files beside it that one user makes the other may not be able to write.',
    );
  }
  if (userId !== null && (file.mode & 0o077) !== 0) {
    const problem = `${path} can be read by others on this machine, documents and answers and all.`;
    return warning('store_file', problem, `chmod 600 ${path}`);
  }
  return ok('store_file', `${path}, ${bytes(file.size)}.`);
}

/** Closes the store. */
async function* lookInside(
  store: Store,
  { place, salvagePath, sound }: InsideLook,
): AsyncGenerator<Diagnosis> {
  try {
    const condition = await store.maintenance.examine();
    yield ok('schema', `Version ${condition.schemaVersion} in ${condition.engine}.`);
    if (condition.damage.length > 0) {
      const advice = `Save a copy, then try: sqlite3 ${place} .recover | sqlite3 recovered.db`;
      yield fault('integrity', `${place} is damaged: ${condition.damage.join('; ')}`, advice);
      return;
    }
    yield ok('integrity', `${bytes(condition.dataBytes)} ${sound}`);
    yield await lookAtCounts(store);
    yield await lookAtOwner(store, condition);
    yield lookForSalvage(salvagePath);
    if (condition.unsweptRuns > 0) {
      yield warning(
        'deleted_runs',
        `Some of what deleted runs had is still there (${condition.unsweptRuns}).`,
        { code: 'DELETED_RUNS_LEFT' },
      );
    }
  } catch (error) {
    yield faultOf('integrity', error);
  } finally {
    await store.close();
  }
}

async function lookAtCounts(store: Store): Promise<Diagnosis> {
  const differences = await store.maintenance.recount();
  if (differences.length === 0) return ok('counts', 'Every count and sum agrees with its rows.');
  const told = differences
    .slice(0, MOST_DIFFERENCES_TOLD)
    .map(
      ({ runName, what, kept, recounted }) => `${what} of '${runName}': ${kept} kept, ${recounted} counted`,
    );
  const more = differences.length - told.length;
  const problem = `Counts differ from what is there: ${told.join('; ')}${more > 0 ? `; and ${more} more` : ''}.`;
  return fault('counts', problem, { code: 'COUNTS_DIFFER' });
}

async function lookAtOwner(store: Store, { openLeases }: StoreCondition): Promise<Diagnosis> {
  const owner = await store.readOwner();
  if (owner !== null) {
    const since = new Date(owner.sinceMs).toISOString();
    return ok('owner', `Process ${owner.pid} on ${owner.host} sends run '${owner.runName}' since ${since}.`);
  }
  if (openLeases === 0) return ok('owner', 'No process sends its documents, and none has left any open.');
  const problem = `The process that sent them has died over ${openLeases} documents.`;
  return warning('owner', problem, '`llm-batch resume` puts them back and goes on.');
}

function lookForSalvage(path: string): Diagnosis {
  const files = findSalvage(path);
  if (files.length === 0) return ok('salvage', 'No answer waits to be stored.');
  return warning(
    'salvage',
    `Answers that could not be stored wait in ${files.join(' and ')}.`,
    '`llm-batch resume` stores them before it goes on; until then keep the file.',
  );
}

function isOfSchema(error: unknown): boolean {
  return error instanceof LlmBatchError && ['STORE_NEWER_SCHEMA', 'STORE_FOREIGN'].includes(error.code);
}

/** For the super-user everything but a read-only disk can be written. */
function may(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

function mayWrite(folder: string): boolean {
  return may(folder, constants.W_OK | constants.X_OK);
}

/** Decimal units, as disks are sold. */
function bytes(count: number): string {
  if (count >= GIGABYTE) return `${(count / GIGABYTE).toFixed(1)} GB`;
  return count >= 1_000_000 ? `${(count / 1_000_000).toFixed(1)} MB` : `${Math.ceil(count / 1_000)} kB`;
}
