/** Opens a store file: makes it where there is none, checks that it is ours, and brings its schema up to date. */
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  openSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs';
import { resolve } from 'node:path';
import Database from 'better-sqlite3';
import type { Clock } from '../../core/clock.js';
import { EXIT_CODES, LlmBatchError } from '../../core/errors.js';
import type { MigrationStep } from '../store.js';
import { Connection } from './connection.js';
import { translateError } from './errors.js';
import { isLocked, lockPathOf } from './lock-file.js';
import { APPLICATION_ID, MIGRATIONS, type Migration, migrate } from './migrations.js';

/** Earlier versions can corrupt a WAL that is reset while it is written (fixed in SQLite 3.51.3). */
const OLDEST_SQLITE = [3, 51, 3] as const;
/** A damaged file is found before money is spent; above this size the check would delay every start. */
const LARGEST_CHECKED_BYTES = 32 * 1024 * 1024;
/** SQLite walks its whole cache at many commits, so more is not better; the system caches the file anyway. */
const CACHE_KIB = 16 * 1024;
/** 16 MiB: fewer, larger checkpoints during an import. */
const CHECKPOINT_PAGES = 4_000;
/** A WAL that a long reader has let grow is cut back to this. */
const WAL_KEPT_BYTES = 64 * 1024 * 1024;

export interface OpenDatabaseOptions {
  readonly mode: 'write' | 'read';
  readonly clock: Clock;
  readonly workingFolder?: string | undefined;
  /** Default true: a file that is not there is made, when it is opened to write. */
  readonly create?: boolean | undefined;
  readonly onMigration?: (step: MigrationStep) => void;
  /** Those of this version, unless a test plays an older or a newer one. */
  readonly migrations?: readonly Migration[];
}

/** @throws LlmBatchError STORE_* (exit 5) */
export async function openDatabase(file: string, options: OpenDatabaseOptions): Promise<Connection> {
  const migrations = options.migrations ?? MIGRATIONS;
  const path = locate(file, options);
  const connection = new Connection(path, { readonly: options.mode === 'read', clock: options.clock });
  try {
    assertSqliteVersion(connection.database);
    const version = await connection.patiently(() => identify(connection.database, path, migrations));
    if (options.mode === 'read') {
      if (version === 0) throw missing(path);
      if (version < migrations.length) await migrateFile(path, options, migrations);
      configure(connection.database);
    } else {
      await prepareForWriting(connection, migrations, options.onMigration);
    }
    return connection;
  } catch (error) {
    connection.close();
    throw translateError(error, path);
  }
}

/** @throws LlmBatchError STORE_OLD_SQLITE (exit 5) */
export function sqliteVersion(): string {
  const database = new Database(':memory:');
  try {
    return assertSqliteVersion(database);
  } finally {
    database.close();
  }
}

/**
 * Creates `path` for this user alone (mode 0600) unless it exists; SQLite gives its WAL the same mode. Never opens
 * a file that is there: closing any descriptor of it would drop this process's own POSIX locks on it.
 */
export function createPrivateFile(path: string): void {
  if (existsSync(path)) return;
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return;
    throw translateError(error, path);
  }
}

/** The real path, so that two names for one store meet at one lock file. */
function locate(file: string, { mode, create = true }: OpenDatabaseOptions): string {
  const path = resolve(file);
  refuseDanglingLink(path);
  if (mode === 'write' && create) createPrivateFile(path);
  else if (!existsSync(path)) throw missing(path);
  try {
    const realPath = realpathSync(path);
    refuseOddFiles(realPath);
    if (mode === 'write') {
      // SQLite opens a read-only file without complaint, and the first paid answer would be the one to find out.
      accessSync(realPath, constants.W_OK);
      // An empty file that somebody has put there, perhaps for all to read, becomes a store.
      if (statSync(realPath).size === 0) chmodSync(realPath, 0o600);
    }
    return realPath;
  } catch (error) {
    throw translateError(error, path);
  }
}

/** A store is not made where a link happens to point. */
function refuseDanglingLink(path: string): void {
  if (!existsSync(path) && lookAt(path)?.isSymbolicLink()) {
    throw oddFile(path, 'is a symbolic link to a file that is not there');
  }
}

/**
 * A pipe would be waited on, a device read, a link followed. The store may be a link itself; what stands beside it is
 * made by SQLite and by this program.
 */
function refuseOddFiles(realPath: string): void {
  const beside = ['-wal', '-shm', '-journal'].map((ending) => realPath + ending);
  for (const path of [realPath, ...beside, lockPathOf(realPath)]) {
    const found = lookAt(path);
    if (found === null || found.isFile() || found.isDirectory()) continue;
    throw oddFile(path, found.isSymbolicLink() ? 'is a symbolic link' : 'is a pipe, a socket or a device');
  }
}

function lookAt(path: string): Stats | null {
  return lstatSync(path, { throwIfNoEntry: false }) ?? null;
}

function oddFile(path: string, what: string): LlmBatchError {
  return new LlmBatchError(`${path} ${what}, and not a file of a store.`, {
    code: 'STORE_ODD_FILE',
    exitCode: EXIT_CODES.store,
  });
}

function missing(path: string): LlmBatchError {
  return new LlmBatchError(`There is no store at ${path}.`, {
    code: 'STORE_MISSING',
    exitCode: EXIT_CODES.store,
  });
}

function inUse(path: string): LlmBatchError {
  return new LlmBatchError(
    `${path} is being drained by an earlier version of llm-batch, which could not go on once this version had changed its schema.`,
    {
      code: 'STORE_LOCKED',
      exitCode: EXIT_CODES.store,
      hint: 'Wait for it, or stop it with Ctrl-C and go on with this version: llm-batch resume. Until then look at it with the earlier version.',
    },
  );
}

function assertSqliteVersion(database: Database.Database): string {
  const version = database.prepare<[], string>('SELECT sqlite_version()').pluck().get() ?? '0';
  const parts = version.split('.').map(Number);
  for (const [index, oldest] of OLDEST_SQLITE.entries()) {
    const part = parts[index] ?? 0;
    if (part > oldest) return version;
    if (part < oldest) {
      throw new LlmBatchError(
        `SQLite ${version} can damage a store; ${OLDEST_SQLITE.join('.')} or newer is needed.`,
        {
          code: 'STORE_OLD_SQLITE',
          exitCode: EXIT_CODES.store,
          hint: 'Install the dependencies again: `npm ci`.',
        },
      );
    }
  }
  return version;
}

/**
 * The schema version of a store, 0 for an empty file. Reads only: a file of someone else is left as it is.
 * @throws LlmBatchError STORE_FOREIGN, STORE_NEWER_SCHEMA
 */
function identify(database: Database.Database, path: string, migrations: readonly Migration[]): number {
  const applicationId = database.pragma('application_id', { simple: true }) as number;
  const version = database.pragma('user_version', { simple: true }) as number;
  const objects = database.prepare<[], number>('SELECT count(*) FROM sqlite_schema').pluck().get() ?? 0;
  if (applicationId !== APPLICATION_ID && (applicationId !== 0 || version !== 0 || objects > 0)) {
    throw new LlmBatchError(`${path} is an SQLite database, but not one of llm-batch.`, {
      code: 'STORE_FOREIGN',
      exitCode: EXIT_CODES.store,
    });
  }
  if (version > migrations.length) {
    throw new LlmBatchError(
      `${path} was written by a newer llm-batch (schema ${version}; this version knows ${migrations.length}).`,
      {
        code: 'STORE_NEWER_SCHEMA',
        exitCode: EXIT_CODES.store,
      },
    );
  }
  refuseForeignCode(database, path, migrations);
  return version;
}

/** Triggers, views and virtual tables run at our statements: a store has those that its migrations made, no others. */
function refuseForeignCode(
  database: Database.Database,
  path: string,
  migrations: readonly Migration[],
): void {
  const own = migrations.map(({ sql }) => sql).join('\n');
  const foreign = database
    .prepare<[], { name: string; sql: string | null }>(
      `SELECT name, sql FROM sqlite_schema WHERE type IN ('trigger', 'view') OR (type = 'table' AND rootpage = 0)`,
    )
    .all()
    .find(({ sql }) => sql === null || !own.includes(sql));
  if (foreign === undefined) return;
  throw new LlmBatchError(`${path} holds code of somebody else: ${JSON.stringify(foreign.name)}.`, {
    code: 'STORE_FOREIGN',
    exitCode: EXIT_CODES.store,
    hint: 'It was left untouched. Do not use it, unless you know who put that there and have taken it out.',
  });
}

/** A file that is there already is looked through before anything is written to it. */
async function prepareForWriting(
  connection: Connection,
  migrations: readonly Migration[],
  onMigration: ((step: MigrationStep) => void) | undefined,
): Promise<void> {
  const { database, path } = connection;
  const isNew = await connection.patiently(() => database.pragma('page_count', { simple: true }) === 0);
  // Takes effect in a file that is still empty, and would write to any other: what it is for says space.ts.
  if (isNew) await connection.patiently(() => database.pragma('auto_vacuum = INCREMENTAL'));
  else if (statSync(path).size <= LARGEST_CHECKED_BYTES) {
    await connection.read(() => assertSound(database, path));
  }
  await connection.patiently(() => database.pragma('journal_mode = WAL'));
  configure(database);
  // A table that others refer to can be made anew only without; inside a transaction it could not be switched off.
  database.pragma('foreign_keys = OFF');
  await connection.write(() => {
    const version = identify(database, path, migrations);
    // The process that drains it may be of the earlier version, and its statements would fail.
    if (version > 0 && version < migrations.length && isLocked(lockPathOf(path))) throw inUse(path);
    const bytes = statSync(path).size;
    migrate(database, migrations, ({ version: step }) => {
      if (version > 0) onMigration?.({ path, bytes, version: step, lastVersion: migrations.length });
    });
  });
  database.pragma('foreign_keys = ON');
}

function assertSound(database: Database.Database, path: string): void {
  const found = database.pragma('quick_check(1)', { simple: true }) as string;
  if (found !== 'ok') throw translateError(Object.assign(new Error(found), { code: 'SQLITE_CORRUPT' }), path);
}

/** A reader cannot migrate; a connection of its own does it for it. */
async function migrateFile(
  path: string,
  { clock, onMigration }: OpenDatabaseOptions,
  migrations: readonly Migration[],
): Promise<void> {
  const connection = new Connection(path, { readonly: false, clock });
  try {
    await prepareForWriting(connection, migrations, onMigration);
  } finally {
    connection.close();
  }
}

function configure(database: Database.Database): void {
  // What is committed is synced by `Connection.write`; this syncs before and after the log is copied into the file.
  database.pragma('synchronous = NORMAL');
  database.pragma('foreign_keys = ON');
  database.pragma('trusted_schema = OFF');
  database.pragma('temp_store = MEMORY');
  database.pragma(`cache_size = -${CACHE_KIB}`);
  database.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  database.pragma(`journal_size_limit = ${WAL_KEPT_BYTES}`);
}
