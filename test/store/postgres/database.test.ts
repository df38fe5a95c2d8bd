/** How a store comes to be in a database, and which databases are left alone. */
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { type OpenStoreOptions, openStore } from '../../../src/store/open.js';
import type { Store } from '../../../src/store/store.js';
import { createRun } from '../../contract/store/builders.js';
import { postgresUrl } from '../../support/postgres.js';

const SCHEMA = `database_${process.pid}`;
let url: string;
let admin: pg.Client;
let opened: Store[];

beforeEach(async () => {
  url = await postgresUrl();
  opened = [];
  admin = new pg.Client({ connectionString: url });
  await admin.connect();
});

afterEach(async () => {
  for (const store of opened) await store.close();
  await admin.query(`DROP SCHEMA IF EXISTS ${SCHEMA} CASCADE`);
  await admin.end();
});

async function open(options: Partial<OpenStoreOptions> = {}): Promise<Store> {
  const store = await openStore(url, { mode: 'write', clock: systemClock, schemaName: SCHEMA, ...options });
  opened.push(store);
  return store;
}

describe('a schema', () => {
  it('is made once by twenty that start at the same time, and all of them work on it', async () => {
    const stores = await Promise.all(Array.from({ length: 20 }, () => open()));
    await Promise.all(stores.map((store, index) => createRun(store, `run-${index}`)));
    expect(await stores[0]?.listRuns()).toHaveLength(20);
    expect((await admin.query(`SELECT schema_version FROM ${SCHEMA}.llm_batch_meta`)).rows).toHaveLength(1);
  });

  it('is not made by who only reads, nor by who only changes', async () => {
    await expect(open({ mode: 'read' })).rejects.toMatchObject({ code: 'STORE_MISSING', exitCode: 5 });
    await expect(open({ create: false })).rejects.toMatchObject({ code: 'STORE_MISSING' });
    expect((await admin.query(`SELECT 1 FROM pg_namespace WHERE nspname = '${SCHEMA}'`)).rows).toEqual([]);
  });

  it('is changed by nobody who only reads', async () => {
    await open();
    const reader = await open({ mode: 'read' });
    await reader.listRuns();
    expect((await admin.query(`SELECT 1 FROM ${SCHEMA}.sessions`)).rows).toEqual([]);
  });

  it('of a newer version is refused, and that of somebody else too', async () => {
    await (await open()).close();
    await admin.query(`UPDATE ${SCHEMA}.llm_batch_meta SET schema_version = 99`);
    await expect(open()).rejects.toMatchObject({ code: 'STORE_NEWER_SCHEMA', exitCode: 5 });
    await admin.query(`DROP TABLE ${SCHEMA}.llm_batch_meta`);
    await expect(open()).rejects.toMatchObject({ code: 'STORE_FOREIGN', exitCode: 5 });
  });

  it('has a name that is no piece of SQL', async () => {
    await expect(open({ schemaName: 'a; DROP TABLE x' })).rejects.toMatchObject({
      code: 'STORE_SCHEMA_NAME',
    });
  });

  it('may be an empty one that was given to a user who may make none', async () => {
    const user = `guest_${process.pid}`;
    await admin.query(`CREATE ROLE ${user} LOGIN PASSWORD 'guest'`);
    try {
      const guest = new URL(url);
      guest.username = user;
      guest.password = 'guest';
      const openAsGuest = () =>
        openStore(guest.href, { mode: 'write', clock: systemClock, schemaName: SCHEMA });
      await expect(openAsGuest()).rejects.toMatchObject({ code: 'STORE_READ_ONLY', exitCode: 5 });
      await admin.query(`CREATE SCHEMA ${SCHEMA} AUTHORIZATION ${user}`);
      const store = await openAsGuest();
      expect(await store.listRuns()).toEqual([]);
      await store.close();
    } finally {
      await admin.query(`DROP SCHEMA IF EXISTS ${SCHEMA} CASCADE; DROP ROLE ${user}`);
    }
  });
});
