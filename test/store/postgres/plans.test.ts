/** What statements cost at a store that has grown since they were planned. */
import pg from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { openStore } from '../../../src/store/open.js';
import type { Store } from '../../../src/store/store.js';
import { callEnd, callStart, claim, completed, documents, openRun } from '../../contract/store/builders.js';
import { postgresUrl } from '../../support/postgres.js';

const SCHEMA = `plans_${process.pid}`;
const DOCUMENTS = 600;
const TOGETHER = 4;
let admin: pg.Client;
let store: Store;

beforeEach(async () => {
  const url = await postgresUrl();
  admin = new pg.Client({ connectionString: url });
  await admin.connect();
  store = await openStore(url, { mode: 'write', clock: systemClock, schemaName: SCHEMA });
});

afterEach(async () => {
  await store.close();
  await admin.query(`DROP SCHEMA ${SCHEMA} CASCADE`);
  await admin.end();
});

it('a statement that was planned while nothing was there looks at its own rows alone once there are many', async () => {
  const tasks = documents(DOCUMENTS);
  const runId = await openRun(store, []);
  await store.matchTasks(runId, tasks.slice(0, TOGETHER), 'server');
  await store.addTasks(runId, tasks);
  for (let first = 0; first < DOCUMENTS; first += TOGETHER) {
    await store.matchTasks(runId, tasks.slice(first, first + TOGETHER), 'server');
    const claimed = await claim(store, runId, TOGETHER);
    const { callIds } = await store.record(
      claimed.map((task) => callStart(runId, [task])),
      [],
    );
    await store.record(
      [],
      claimed.map((task, index) => completed(task, callEnd(callIds[index] ?? 0))),
    );
  }
  // Its connections tell what they have read when they end.
  await store.close();
  const { rows } = await admin.query<{ table: string; read: number }>(
    `SELECT relname AS table, ((seq_tup_read + idx_tup_fetch) / ${DOCUMENTS})::int AS read
     FROM pg_stat_user_tables WHERE schemaname = '${SCHEMA}' AND relname IN ('tasks', 'calls', 'task_keys', 'documents')`,
  );
  expect(rows).toHaveLength(4);
  for (const { table, read } of rows)
    expect(read, `rows of ${table} that were read for each`).toBeLessThan(20);
});
