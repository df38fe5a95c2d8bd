/** Finds the store's schema on a server, makes it, and brings it up to date. */
import type pg from 'pg';
import type { Clock } from '../../core/clock.js';
import { EXIT_CODES, LlmBatchError } from '../../core/errors.js';
import type { MigrationStep } from '../store.js';
import type { Address } from './address.js';
import { Connections } from './connections.js';
import { translateError } from './errors.js';
import { MIGRATIONS, type Migration } from './migrations.js';

/** For `count(*) FILTER`, transition tables of triggers and their like it would be 10; those before 13 have no support any more. */
const OLDEST_SERVER = 13;
/** First half of the key of advisory locks while a schema is changed; the second stands for the schema. "llmb" in ASCII. */
const MIGRATION_LOCK = 0x6c6c6d62;

export interface OpenDatabaseOptions {
  readonly mode: 'write' | 'read';
  readonly clock: Clock;
  /** Default true: a schema that is not there is made, when it is opened to write. */
  readonly create?: boolean;
  readonly onMigration?: (step: MigrationStep) => void;
  /** Those of this version, unless a test plays an older or a newer one. */
  readonly migrations?: readonly Migration[];
}

/** @throws LlmBatchError STORE_* (exit 5) */
export async function openDatabase(address: Address, options: OpenDatabaseOptions): Promise<Connections> {
  const migrations = options.migrations ?? MIGRATIONS;
  const connections = new Connections(address, options);
  try {
    const version = await identify(connections, migrations);
    if (version === 0 && (options.mode === 'read' || options.create === false)) throw missing(address);
    if (version < migrations.length) await migrate(connections, migrations, options.onMigration);
    return connections;
  } catch (error) {
    await connections.close();
    throw translateError(error, address.place);
  }
}

interface ServerRow {
  server: number;
  encoding: string;
  /** Whether there is a schema of that name, and whether it has our table. */
  has_schema: boolean;
  has_meta: boolean;
  /** Whether somebody else's tables are in it. */
  has_tables: boolean;
}

/** The schema version of a store, 0 where there is none. Changes nothing. */
async function identify(connections: Connections, migrations: readonly Migration[]): Promise<number> {
  const { address } = connections;
  const [found] = await connections.all<ServerRow>(
    `SELECT current_setting('server_version_num')::int / 10000 AS server, current_setting('server_encoding') AS encoding,
       EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1) AS has_schema,
       EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = $1 AND tablename = 'llm_batch_meta') AS has_meta,
       EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = $1) AS has_tables`,
    address.schema,
  );
  if (found === undefined) throw new Error('the server gave no row');
  if (found.server < OLDEST_SERVER || found.encoding !== 'UTF8') {
    throw new LlmBatchError(
      found.encoding === 'UTF8'
        ? `${address.place} is PostgreSQL ${found.server}; ${OLDEST_SERVER} or newer is needed.`
        : `${address.place} keeps text as ${found.encoding}; only UTF8 holds every document.`,
      { code: 'STORE_UNFIT_SERVER', exitCode: EXIT_CODES.store, facts: { place: address.place } },
    );
  }
  if (!found.has_meta) {
    if (found.has_tables) {
      throw new LlmBatchError(`${address.place} holds tables that are not those of llm-batch.`, {
        code: 'STORE_FOREIGN',
        exitCode: EXIT_CODES.store,
      });
    }
    return 0;
  }
  const [meta] = await connections.all<{ schema_version: number }>(
    'SELECT schema_version FROM llm_batch_meta',
  );
  return knownVersion(address, meta?.schema_version ?? 0, migrations);
}

function knownVersion(address: Address, version: number, migrations: readonly Migration[]): number {
  if (version <= migrations.length) return version;
  throw new LlmBatchError(
    `${address.place} was written by a newer llm-batch (schema ${version}; this version knows ${migrations.length}).`,
    { code: 'STORE_NEWER_SCHEMA', exitCode: EXIT_CODES.store },
  );
}

/** All of it happens or nothing, and once, however many start at the same time: the others wait and find it done. */
async function migrate(
  connections: Connections,
  migrations: readonly Migration[],
  onMigration: ((step: MigrationStep) => void) | undefined,
): Promise<void> {
  const { address } = connections;
  const client = await connections.separate();
  try {
    await client.query('BEGIN READ WRITE; SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0');
    await client.query('SELECT pg_advisory_xact_lock($1, hashtext($2))', [MIGRATION_LOCK, address.schema]);
    const { version, bytes } = await lookForSchema(client, address);
    for (const migration of migrations) {
      if (migration.version <= knownVersion(address, version, migrations)) continue;
      if (version > 0) {
        const step = { path: address.place, bytes, version: migration.version };
        onMigration?.({ ...step, lastVersion: migrations.length });
      }
      await client.query(migration.sql.replaceAll('@schema', address.schema));
    }
    await client.query('UPDATE llm_batch_meta SET schema_version = $1', [migrations.length]);
    await client.query('COMMIT');
  } finally {
    await client.end();
  }
}

/** Makes the schema where there is none. Call with the lock held. */
async function lookForSchema(
  client: pg.Client,
  { schema }: Address,
): Promise<{ readonly version: number; readonly bytes: number }> {
  const { rows: known } = await client.query<{ has_meta: boolean }>(
    `SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = nspname AND tablename = 'llm_batch_meta') AS has_meta
     FROM pg_namespace WHERE nspname = $1`,
    [schema],
  );
  // Whoever may not make schemas may be given an empty one.
  if (known.length === 0) await client.query(`CREATE SCHEMA ${schema}`);
  if (known[0]?.has_meta !== true) {
    await client.query(
      `CREATE TABLE llm_batch_meta (schema_version integer NOT NULL);
       INSERT INTO llm_batch_meta (schema_version) VALUES (0)`,
    );
  }
  const { rows } = await client.query<{ version: number; bytes: number }>(
    `SELECT schema_version AS version, (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint
       FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'r') AS bytes
     FROM llm_batch_meta`,
    [schema],
  );
  return rows[0] ?? { version: 0, bytes: 0 };
}

function missing({ place }: Address): LlmBatchError {
  return new LlmBatchError(`There is no store at ${place}.`, {
    code: 'STORE_MISSING',
    exitCode: EXIT_CODES.store,
  });
}
