/** From a store's URL to its backend: the only module that names one. */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Clock } from '../core/clock.js';
import { EXIT_CODES, LlmBatchError, usageError } from '../core/errors.js';
import { fileSystemOf } from './file-system.js';
import { addressOf } from './postgres/address.js';
import type { MigrationStep, Store } from './store.js';

export interface OpenStoreOptions {
  /** `read` never creates or changes a store, and works while another process drains it. */
  readonly mode: 'write' | 'read';
  readonly clock: Clock;
  /** Where the user works, absolute: see `Store.workingFolder`. */
  readonly workingFolder?: string;
  /** Default true: a store that is not there is made, when it is opened to write. */
  readonly create?: boolean;
  /** Told before each step by which a store of an earlier version is brought up to date; a large one takes seconds. */
  readonly onMigration?: (step: MigrationStep) => void;
  /** A store in a file is on a thread of its own, and goes by the system's clock. Default false. */
  readonly onThread?: boolean;
  /** Of a store on a server: the schema that holds it. */
  readonly schemaName?: string;
}

/** Where a server holds a store unless it is said otherwise. */
export const DEFAULT_SCHEMA_NAME = 'llm_batch';

/** At least two letters, so that a Windows drive is a path. */
const SCHEME = /^([a-z][a-z0-9+.-]+):/i;

/**
 * Which storage engine a local store has, e.g. `SQLite 3.53.2`.
 * @throws LlmBatchError STORE_OLD_SQLITE (exit 5); Error when its binary does not fit this machine
 */
export async function engineVersion(): Promise<string> {
  const { sqliteVersion } = await import('./sqlite/database.js');
  return `SQLite ${sqliteVersion()}`;
}

/**
 * Opens a store. Backends are loaded when they are named, so that `--help` starts without them.
 * @param url a path, `sqlite:path`, or `postgres://…`
 * @throws LlmBatchError STORE_MISSING when there is nothing to read, STORE_* (exit 5) when it cannot be opened,
 *   STORE_URL_UNSUPPORTED (exit 2) for another kind of store
 */
export async function openStore(url: string, options: OpenStoreOptions): Promise<Store> {
  if (isServerUrl(url)) {
    const { openPostgresStore } = await import('./postgres/store.js');
    return openPostgresStore(url, options.schemaName ?? DEFAULT_SCHEMA_NAME, options);
  }
  const path = storePath(url);
  if (options.mode === 'write') refuseNetwork(path);
  if (options.onThread) {
    const { openThreadedStore } = await import('./sqlite/threaded-store.js');
    return openThreadedStore(path, options);
  }
  const { openSqliteStore } = await import('./sqlite/store.js');
  return openSqliteStore(path, options);
}

/** Whether a store's URL names a server, and not a file of this machine. */
export function isServerUrl(url: string): boolean {
  return /^postgres(ql)?:\/\//i.test(url);
}

/** A server's store in words for people: without a password. @throws LlmBatchError STORE_URL_ODD, STORE_SCHEMA_NAME (exit 2) */
export function serverPlace(url: string, schemaName: string): string {
  return addressOf(url, schemaName).place;
}

/**
 * The file that a store's URL names.
 * @throws LlmBatchError STORE_URL_* (exit 2)
 */
export function storePath(url: string): string {
  const scheme = SCHEME.exec(url)?.[1]?.toLowerCase();
  if (scheme !== undefined && scheme !== 'sqlite' && url.slice(scheme.length).startsWith('://')) {
    throw usageError('STORE_URL_UNSUPPORTED', `There is no store for ${scheme}: URLs.`);
  }
  const path = scheme === 'sqlite' ? url.slice('sqlite:'.length).replace(/^\/\//, '') : url;
  if (path === '') throw usageError('STORE_URL_EMPTY', 'The store has no name.');
  return path;
}

function refuseNetwork(path: string): void {
  const folder = dirname(resolve(path));
  // A folder that is not there is told by whoever makes the file.
  if (process.platform !== 'linux' || !existsSync(folder)) return;
  const { name, network } = fileSystemOf(path);
  if (!network) return;
  throw new LlmBatchError(
    `${folder} is on a network file system (${name}), where an SQLite store is not safe.`,
    {
      code: 'STORE_NETWORK_FILE_SYSTEM',
      exitCode: EXIT_CODES.store,
    },
  );
}
