/** The program on a store that a server holds: every command that works on a file works there, and the password is nobody's. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { type Simulator, startSimulator } from '../../src/simulator/simulator.js';
import { hurriedClock } from '../support/hurried-clock.js';
import { runInProcess } from '../support/in-process.js';
import { postgresUrl } from '../support/postgres.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

let workspace: Workspace;
let simulator: Simulator;
let url: string;
const SCHEMA = `commands_${process.pid}`;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulator({}, { clock: systemClock });
  url = await postgresUrl();
});

afterEach(async () => {
  await query(`DROP SCHEMA IF EXISTS ${SCHEMA} CASCADE`);
  await simulator.close();
  workspace.remove();
});

async function query<Row extends object>(sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
}

/** All that the program has told. */
const told: string[] = [];

async function llmBatch(...args: readonly string[]) {
  const environment = {
    OPENAI_BASE_URL: simulator.url,
    LLM_BATCH_STORE: url,
    LLM_BATCH_SCHEMA_NAME: SCHEMA,
    XDG_STATE_HOME: workspace.path('state'),
  };
  const end = await runInProcess(args, { folder: workspace.folder, environment });
  told.push(end.stdout, end.stderr);
  return end;
}

/** What all files in a folder hold. */
function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, 'utf8'));
}

describe('a store on a server', () => {
  it('carries a run from its import to its removal, by every command', async () => {
    const refused = { id: 'no', text: '[[simulate:refuse]] No.' };
    workspace.writeDocuments('docs.jsonl', [...numberedDocuments(5), refused]);
    const ran = await llmBatch('run', 'docs.jsonl');
    expect(ran.exitCode, ran.stderr).toBe(3);
    expect(workspace.readLines('docs.results.jsonl')).toHaveLength(5);

    const status = JSON.parse((await llmBatch('status', '--json')).stdout);
    expect(status).toMatchObject({ status: 'finished', documents: { completed: 5, failed: 1 } });
    expect((await llmBatch('list')).stdout).toMatch(/docs/);
    expect((await llmBatch('failures')).stdout).toContain('no');
    const report = await llmBatch('report', '-o', 'report.html');
    expect(report.exitCode, report.stderr).toBe(0);

    expect((await llmBatch('retry', 'docs')).exitCode).toBe(0);
    const resumed = await llmBatch('resume', '--max-attempts', '1');
    expect(resumed.exitCode, resumed.stderr).toBe(3);
    // One of six was called once more.
    expect(simulator.books().calls).toBe(7);
    const results = await llmBatch('results', '-o', 'again.jsonl');
    expect(results.exitCode, results.stderr).toBe(0);
    expect(workspace.readLines('again.jsonl')).toHaveLength(5);

    const doctor = await llmBatch('doctor', '--offline');
    expect(doctor.stdout).toMatch(/store_server|schema/);
    expect(doctor.stdout).toContain('PostgreSQL');
    expect(doctor.stdout).toContain('Every count and sum agrees');

    await llmBatch('retry', 'docs');
    const cancelled = await llmBatch('cancel', 'docs', '--yes');
    expect(cancelled.exitCode, cancelled.stderr).toBe(0);
    const pruned = await llmBatch('prune', 'docs', '--yes');
    expect(pruned.exitCode, pruned.stderr).toBe(0);
    expect(await query(`SELECT 1 FROM ${SCHEMA}.tasks`)).toEqual([]);
    expect((await llmBatch('list')).stderr).toContain('no run yet');
  });

  it('has a password that is told to nobody, and written down nowhere', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(2));
    for (const command of [
      ['run', 'docs.jsonl', '--log-json'],
      ['status', '--json'],
      ['doctor'],
      ['report'],
    ]) {
      await llmBatch(...command);
    }
    const password = new URL(url).password;
    const tables = await query<{ name: string }>(
      `SELECT tablename AS name FROM pg_tables WHERE schemaname = '${SCHEMA}'`,
    );
    expect(tables.length).toBeGreaterThan(10);
    for (const { name } of tables) told.push(JSON.stringify(await query(`SELECT * FROM ${SCHEMA}.${name}`)));
    const everything = [...told, ...filesIn(workspace.folder)];
    expect(everything.join('\n')).toContain('docs');
    expect(everything.filter((text) => text.includes(password))).toEqual([]);
  });

  it.each([
    [
      'at an address where nobody listens',
      () => 'postgres://someone:hidden@127.0.0.1:1/none',
      'cannot be reached',
      5,
    ],
    ['for a password that is not the one', () => url.replace(/:[^:@]*@/, ':hidden@'), 'lets this user in', 5],
    ['for an address that is none', () => 'postgres://someone:hidden@[', 'no URL', 2],
  ])('is refused %s, without the password', async (_, addressOf, words, exitCode) => {
    const end = await runInProcess(['status', '--store', addressOf()], {
      folder: workspace.folder,
      clock: hurriedClock(20),
    });
    expect(end.exitCode).toBe(exitCode);
    expect(end.stderr).toContain(words);
    expect(end.stderr).not.toContain('hidden');
  });
});
