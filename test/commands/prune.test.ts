/** Old runs go, whole and for good, and their room with them; nothing that is in use does. */
import { execFileSync } from 'node:child_process';
import { createWriteStream, existsSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { openStore } from '../../src/store/open.js';
import { createRun, documents as newDocuments, openRun } from '../contract/store/builders.js';
import { runInProcess } from '../support/in-process.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { waitFor } from '../support/wait-for.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

const DAY_MS = 86_400_000;

let workspace: Workspace;

beforeEach(() => {
  workspace = new Workspace();
});

afterEach(() => workspace.remove());

function inProcess(...args: readonly string[]) {
  return runInProcess(args, { folder: workspace.folder });
}

/** Lets days pass for a run. */
function age(run: string, days: number): void {
  const database = new Database(workspace.storePath);
  database
    .prepare(
      `UPDATE runs SET created_at_ms = created_at_ms - @ms, stopped_at_ms = stopped_at_ms - @ms WHERE name = @run`,
    )
    .run({ run, ms: days * DAY_MS });
  database
    .prepare(
      `UPDATE run_totals SET last_call_at_ms = last_call_at_ms - @ms
       WHERE run_id = (SELECT id FROM runs WHERE name = @run)`,
    )
    .run({ run, ms: days * DAY_MS });
  database.close();
}

function runNames(): string[] {
  return workspace
    .query<{ name: string }>('SELECT name FROM runs WHERE deleted = 0 ORDER BY id')
    .map(({ name }) => name);
}

function count(table: string): number {
  return workspace.query<{ rows: number }>(`SELECT count(*) AS rows FROM ${table}`)[0]?.rows ?? 0;
}

describe('prune', () => {
  let simulator: SimulatorHere;

  beforeEach(async () => {
    simulator = await startSimulatorHere();
  });

  afterEach(() => simulator.stop());

  it('deletes runs of that age, and nothing of the others', async () => {
    for (const name of ['old', 'cancelled', 'young']) {
      workspace.writeDocuments(`${name}.jsonl`, numberedDocuments(20));
      await inProcess('run', `${name}.jsonl`, '--base-url', simulator.url);
    }
    const database = new Database(workspace.storePath);
    database.exec(`UPDATE runs SET status = 'cancelled' WHERE name = 'cancelled'`);
    database.close();
    age('old', 40);
    age('cancelled', 31);
    age('young', 29);
    const kept = await workspace.status('young');
    const answers = await workspace.results('young');

    const listed = await inProcess('prune', '--older-than', '30d', '--dry-run');
    expect(listed.exitCode).toBe(0);
    expect(listed.stdout).toMatch(
      /^run +state +documents +last active +input\nold +finished +20 +40 d ago .*\ncancelled +cancelled +20 +31 d ago .*\n$/,
    );
    expect(listed.stderr).toContain('Nothing was deleted');
    const unsure = await workspace.run(['prune', '--older-than', '30d']);
    expect(unsure.exitCode).toBe(2);
    expect(unsure.stderr).toContain('these 2 runs');
    expect(unsure.stderr).toContain('--yes');
    expect(runNames()).toEqual(['old', 'cancelled', 'young']);

    const pruned = await workspace.run(['prune', '--older-than', '30d', '--yes']);
    expect(pruned.exitCode, pruned.stderr).toBe(0);
    expect(pruned.stderr).toContain('2 runs deleted.');
    expect(runNames()).toEqual(['young']);
    for (const table of ['tasks', 'documents', 'results', 'calls', 'task_keys']) {
      expect(count(table), table).toBe(20);
    }
    const { documents, calls } = await workspace.status('young');
    expect({ documents, calls }).toEqual({ documents: kept.documents, calls: kept.calls });
    expect(await workspace.results('young')).toEqual(answers);
    expect((await inProcess('status', 'old')).exitCode).toBe(2);
    expect(existsSync(workspace.path('old.results.jsonl'))).toBe(true);
    expect(workspace.integrity()).toBe('ok');

    const nothing = await inProcess('prune', '--older-than', '30d');
    expect(nothing).toMatchObject({ exitCode: 0, stdout: '' });
    expect(nothing.stderr).toContain('No run was last active more than 30d ago.');
  });

  it('never touches the run that is being drained, and works beside it', async () => {
    workspace.writeDocuments('done.jsonl', numberedDocuments(5));
    await inProcess('run', 'done.jsonl', '--base-url', simulator.url);
    workspace.writeDocuments('busy.jsonl', [{ id: 'stuck', text: '[[simulate:hang]]' }]);
    const program = workspace.start(['run', 'busy.jsonl', '--base-url', simulator.url]);
    await waitFor('the call', async () => (await simulator.books()).openCalls === 1);

    const pruned = await inProcess('prune', '--older-than', '0s', '--yes');
    expect(pruned.exitCode, pruned.stderr).toBe(0);
    expect(pruned.stdout).not.toContain('busy');
    expect(runNames()).toEqual(['busy']);
    await simulator.heal();
    program.kill('SIGINT');
    program.kill('SIGKILL');
    await program.ended;
    const resumed = await inProcess('resume');
    expect(resumed.exitCode, resumed.stderr).toBe(0);
  });

  it('never touches the run that is being imported, but one whose import was cut off', async () => {
    // A pipe by the input's name, which says no more for now.
    execFileSync('mkfifo', [workspace.path('slow.jsonl')]);
    const program = workspace.start(['run', 'slow.jsonl', '--base-url', simulator.url]);
    const pipe = createWriteStream(workspace.path('slow.jsonl')).on('error', () => undefined);
    pipe.write(`${JSON.stringify({ text: 'one' })}\n`);
    await waitFor('the import', async () => existsSync(workspace.storePath) && namesOrNone().length === 1);
    expect((await inProcess('prune', '--older-than', '0s', '--yes')).exitCode).toBe(0);
    expect(runNames()).toEqual(['slow']);

    program.kill('SIGKILL');
    await program.ended;
    pipe.destroy();
    const pruned = await inProcess('prune', '--older-than', '0s', '--yes');
    expect(pruned.stdout).toContain('importing');
    expect(runNames()).toEqual([]);

    function namesOrNone(): string[] {
      try {
        return runNames();
      } catch {
        return []; // Its tables are not there yet.
      }
    }
  });
});

describe('a prune that is cut off in the middle', () => {
  it.each([
    ['SIGKILL', null],
    ['SIGINT', 130],
  ] as const)('by %s leaves no half run, and the next finishes it', async (signal, exitCode) => {
    const store = await openStore(workspace.storePath, { mode: 'write', clock: systemClock });
    const body = JSON.stringify({ text: 'x'.repeat(1_000) });
    const runId = await openRun(store, [], 'old');
    const many = newDocuments(60_000).map((document) => ({ ...document, body }));
    for (let from = 0; from < many.length; from += 5_000)
      await store.addTasks(runId, many.slice(from, from + 5_000));
    await createRun(store, 'young');
    await store.close();
    age('old', 365);
    const fullBytes = statSync(workspace.storePath).size;

    const program = workspace.start(['prune', '--older-than', '30d', '--yes']);
    await waitFor('the first page', () => count('tasks') < many.length);
    program.kill(signal);
    const end = await program.ended;
    expect(end.exitCode).toBe(exitCode);
    expect(count('tasks'), 'it was too late to cut it off').toBeGreaterThan(0);
    if (signal === 'SIGINT') expect(end.stderr).toContain('`llm-batch prune` goes on');

    expect(runNames()).toEqual(['young']);
    expect((await inProcess('status', 'old')).exitCode).toBe(2);
    const next = await workspace.run(['prune', '--older-than', '30d', '--yes']);
    expect(next.exitCode, next.stderr).toBe(0);
    expect(next.stderr).toContain('given back to the file system');
    expect(existsSync(`${workspace.storePath}-wal`)).toBe(false);
    expect(statSync(workspace.storePath).size).toBeLessThan(fullBytes / 20);
    expect(count('tasks')).toBe(0);
    expect(count('runs')).toBe(1);
    expect(workspace.integrity()).toBe('ok');
  });
});

describe('an age', () => {
  it.each(['30', 'soon', '-1d', ''])('cannot be %j', async (text) => {
    const end = await inProcess('prune', `--older-than=${text}`, '--yes');
    expect(end.exitCode).toBe(2);
    expect(end.stderr).toContain('30d');
  });

  it('must be given', async () => {
    expect((await inProcess('prune', '--yes')).exitCode).toBe(2);
  });

  it('makes no store where there is none', async () => {
    expect((await inProcess('prune', '--older-than', '1d', '--yes')).exitCode).toBe(5);
    expect(existsSync(workspace.storePath)).toBe(false);
  });
});
