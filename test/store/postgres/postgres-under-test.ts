import pg from 'pg';
import { systemClock } from '../../../src/core/clock.js';
import { openStore } from '../../../src/store/open.js';
import type { Store } from '../../../src/store/store.js';
import { NOW_MS, type StoreUnderTest } from '../../contract/store/builders.js';
import { postgresUrl } from '../../support/postgres.js';

/** Those of this file that no test uses just now: to empty one takes a tenth of what it takes to make one. */
const emptySchemas: string[] = [];
let made = 0;
let admin: Promise<pg.Client> | null = null;

/** A schema of its own in the session's server, whose clock stands still until it is moved. */
export async function openPostgresUnderTest(): Promise<StoreUnderTest> {
  const url = await postgresUrl();
  admin ??= connect(url);
  const { query } = await ready(admin);
  const known = emptySchemas.pop();
  if (known === undefined) made += 1;
  const schemaName = known ?? `contract_${process.pid}_${made}`;
  const open = (): Promise<Store> => openStore(url, { mode: 'write', clock: systemClock, schemaName });
  const store = await open();
  if (known === undefined) await query(withStandingClock(schemaName));
  await query(`UPDATE ${schemaName}.test_clock SET ms = ${NOW_MS}`);
  const others: Store[] = [];
  return {
    store,
    openAgain: async () => {
      const other = await open();
      others.push(other);
      return other;
    },
    passTime: async (ms) => query(`UPDATE ${schemaName}.test_clock SET ms = ms + ${ms}`),
    dispose: async () => {
      for (const each of [store, ...others]) await each.close();
      await query(`SELECT ${schemaName}.make_empty()`);
      emptySchemas.push(schemaName);
    },
  };
}

async function ready(client: Promise<pg.Client>): Promise<{ query(sql: string): Promise<void> }> {
  const connected = await client;
  return {
    async query(sql) {
      await connected.query(sql);
    },
  };
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  // Of no use to anybody once the tests are done.
  client.on('error', () => undefined);
  await client.connect();
  (client as unknown as { unref(): void }).unref();
  return client;
}

function withStandingClock(schema: string): string {
  return `
    CREATE TABLE ${schema}.test_clock (ms double precision NOT NULL);
    INSERT INTO ${schema}.test_clock VALUES (0);
    CREATE OR REPLACE FUNCTION ${schema}.now_ms() RETURNS bigint LANGUAGE sql STABLE
      AS 'SELECT round(ms)::bigint FROM ${schema}.test_clock';
    CREATE FUNCTION ${schema}.make_empty() RETURNS void LANGUAGE plpgsql AS $$
    DECLARE each record;
    BEGIN
      FOR each IN SELECT tablename AS name FROM pg_tables
        WHERE schemaname = '${schema}' AND tablename NOT IN ('test_clock', 'llm_batch_meta')
        -- Whose rows are written by the removal of others.
        ORDER BY tablename = 'task_counts'
      LOOP EXECUTE format('DELETE FROM ${schema}.%I', each.name); END LOOP;
      FOR each IN SELECT sequencename AS name FROM pg_sequences WHERE schemaname = '${schema}'
      LOOP EXECUTE format('SELECT setval(''${schema}.%I'', 1, false)', each.name); END LOOP;
    END $$`;
}
