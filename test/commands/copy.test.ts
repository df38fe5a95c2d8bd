/** A run that outgrew its machine goes on in a store on a server, and nothing of it is sent twice. */
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runInProcess } from '../support/in-process.js';
import { postgresUrl } from '../support/postgres.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { waitFor } from '../support/wait-for.js';
import { answerTo, numberedDocuments, Workspace } from '../support/workspace.js';

const SCHEMA = `copied_${process.pid}`;
const ANSWERED = numberedDocuments(6);
const OPEN = [1, 2].map((number) => ({ id: `open-${number}`, text: `[[simulate:hang]] ${number}` }));

let workspace: Workspace;
let simulator: SimulatorHere;
let url: string;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorHere();
  url = await postgresUrl();
});

afterEach(async () => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`DROP SCHEMA IF EXISTS ${SCHEMA} CASCADE`);
  await client.end();
  await simulator.stop();
  workspace.remove();
});

function llmBatch(...args: readonly string[]) {
  const environment = {
    OPENAI_BASE_URL: simulator.url,
    XDG_STATE_HOME: workspace.path('state'),
    LLM_BATCH_SCHEMA_NAME: SCHEMA,
  };
  return runInProcess(args, { folder: workspace.folder, environment });
}

describe('copy', () => {
  it('moves a run whose process was killed, and resume there sends what is open and nothing else', async () => {
    workspace.writeDocuments('docs.jsonl', [...ANSWERED, ...OPEN]);
    const program = workspace.start(['run', 'docs.jsonl', '--base-url', simulator.url]);
    await waitFor('the answers', async () => {
      if ((await simulator.books()).openCalls < OPEN.length) return false;
      return workspace.query(`SELECT 1 FROM tasks WHERE state = 'completed'`).length === ANSWERED.length;
    });
    const busy = await llmBatch('copy', '--to', url);
    expect(busy.exitCode, busy.stderr).toBe(5);
    expect(busy.stderr).toContain(`process ${program.child.pid} on `);
    program.kill('SIGKILL');
    await program.ended;
    await simulator.heal();

    const copied = await llmBatch('copy', '--to', url);
    expect(copied.exitCode, copied.stderr).toBe(0);
    expect(copied.stderr).toMatch(/1 run copied to postgres:.*: 8 documents, 6 results\./);
    expect(copied.stderr).not.toContain(new URL(url).password);

    const resumed = await llmBatch('resume', '--store', url);
    expect(resumed.exitCode, resumed.stderr).toBe(0);
    expect((await simulator.books()).calls).toBe(ANSWERED.length + OPEN.length + OPEN.length);
    const results = workspace.readLines('docs.results.jsonl');
    expect(results.map(({ output }) => output).slice(0, 6)).toEqual(
      ANSWERED.map(({ text }) => answerTo(text)),
    );
    expect(results).toHaveLength(8);
    const doctor = await llmBatch('doctor', '--offline', '--store', url);
    expect(doctor.stdout).toContain('Every count and sum agrees');
    expect((await workspace.status()).documents, 'the file stays as it is').toMatchObject({ completed: 6 });

    const again = await llmBatch('copy', '--to', url);
    expect(again.exitCode).toBe(2);
    expect(again.stderr).toContain('already has a run called "docs"');
  });

  it('goes to a server alone, and makes no file', async () => {
    workspace.writeDocuments('docs.jsonl', ANSWERED);
    await llmBatch('run', 'docs.jsonl', '--base-url', simulator.url);
    const refused = await llmBatch('copy', '--to', 'other.db');
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toContain('--to postgres://');
    expect(() => workspace.read('other.db')).toThrow();
  });
});
