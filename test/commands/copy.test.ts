/** A run that outgrew its machine goes on in a store on a server, and nothing of it is sent twice. */
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { openStore } from '../../src/store/open.js';
import { claimAndCall } from '../contract/store/builders.js';
import { hurriedClock } from '../support/hurried-clock.js';
import { runInProcess } from '../support/in-process.js';
import { postgresUrl } from '../support/postgres.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { answerTo, numberedDocuments, Workspace } from '../support/workspace.js';

const SCHEMA = `copied_${process.pid}`;
const DOCUMENTS = numberedDocuments(8);
const ANSWERED = 6;

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
  it('moves a run whose process has died, and resume there sends what is open and nothing else', async () => {
    workspace.writeDocuments('docs.jsonl', DOCUMENTS);
    await llmBatch('run', 'docs.jsonl', '--limit', String(ANSWERED));
    expect((await simulator.books()).calls).toBe(ANSWERED);
    const owner = await openStore(workspace.storePath, { mode: 'write', clock: systemClock });
    await owner.acquireDrainLock({ pid: 123, host: 'laptop', runName: 'docs', sinceMs: 0 });
    const [run] = await owner.listRuns();
    await claimAndCall(owner, run?.id ?? 0, 1);
    const busy = await llmBatch('copy', '--to', url);
    expect(busy.exitCode, busy.stderr).toBe(5);
    expect(busy.stderr).toContain('process 123 on laptop');
    await owner.close();

    const copied = await llmBatch('copy', '--to', url);
    expect(copied.exitCode, copied.stderr).toBe(0);
    expect(copied.stderr).toMatch(/1 run copied to postgres:.*: 8 documents, 6 results\./);
    expect(copied.stderr).not.toContain(new URL(url).password);

    const resumed = await llmBatch('resume', '--store', url);
    expect(resumed.exitCode, resumed.stderr).toBe(0);
    expect((await simulator.books()).calls).toBe(DOCUMENTS.length);
    const results = workspace.readLines('docs.results.jsonl');
    expect(results.map(({ output }) => output)).toEqual(DOCUMENTS.map(({ text }) => answerTo(text)));
    const doctor = await llmBatch('doctor', '--offline', '--store', url);
    expect(doctor.stdout).toContain('Every count and sum agrees');
    const file = JSON.parse((await llmBatch('status', '--json')).stdout);
    expect(file.documents, 'what is left behind').toMatchObject({ completed: ANSWERED, pending: 2 });

    const again = await llmBatch('copy', '--to', url);
    expect(again.exitCode).toBe(2);
    expect(again.stderr).toContain('already has a run called "docs"');
  });

  it('goes to a server alone, and makes no file', async () => {
    workspace.writeDocuments('docs.jsonl', DOCUMENTS);
    await llmBatch('run', 'docs.jsonl', '--base-url', simulator.url);
    const refused = await llmBatch('copy', '--to', 'other.db');
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toContain('--to postgres://');
    expect(() => workspace.read('other.db')).toThrow();
    const fromServer = await llmBatch('copy', '--to', url, '--store', 'postgres://someone@127.0.0.1:1/none');
    expect(fromServer).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('no other way') });
  });

  it('names its own flag where the server is not there', async () => {
    workspace.writeDocuments('docs.jsonl', DOCUMENTS);
    await llmBatch('run', 'docs.jsonl', '--detach');
    const nowhere = await runInProcess(['copy', '--to', 'postgres://someone@127.0.0.1:1/none'], {
      folder: workspace.folder,
      clock: hurriedClock(20),
    });
    expect(nowhere.exitCode).toBe(5);
    expect(nowhere.stderr).toContain('Check --to,');
    expect(nowhere.stderr).not.toContain('--store');
  });
});
