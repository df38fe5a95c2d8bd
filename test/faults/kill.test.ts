/**
 * Kills the program for real, again and again, and takes the simulator, a process of its own, as the witness.
 *
 * What is printed with `-o -` has been committed: that is the promise to whoever reads it. It is read from the store, and
 * "prints nothing that cannot be committed" is red as soon as a line is made of anything else.
 */
import { execFileSync } from 'node:child_process';
import { createWriteStream, rmSync } from 'node:fs';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { simulatedVector } from '../../src/simulator/embeddings.js';
import { simulatedModeration } from '../../src/simulator/moderations.js';
import { jsonLines, type ProgramEnd, type RunningProgram } from '../support/program.js';
import { seededRandom } from '../support/seeded-random.js';
import { type SimulatorProcess, startSimulatorProcess } from '../support/simulator-process.js';
import { waitFor } from '../support/wait-for.js';
import { answerTo, numberedDocuments, Workspace } from '../support/workspace.js';

const DOCUMENTS = 400;
const CONCURRENCY = 32;
const KILLS = 20;
const SEED = Number(process.env['KILL_SEED'] ?? 20_251);

let workspace: Workspace;
let simulator: SimulatorProcess;

beforeEach(() => {
  workspace = new Workspace();
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

/** Lines that came out whole; the last may have been cut by the kill. */
function completeLines(text: string): string[] {
  return text.split('\n').slice(0, -1);
}

/** Kills the program once the server has seen so many calls; with 0, at the first word it says. */
async function killAt(program: RunningProgram, callsAtServer: number): Promise<ProgramEnd> {
  let ended = false;
  void program.ended.then(() => {
    ended = true;
  });
  for (;;) {
    const reached =
      callsAtServer === 0 ? program.stderr() !== '' : (await simulator.books()).calls >= callsAtServer;
    if (reached || ended) break;
    // Not in a closer circle: the one to be killed needs the processor too.
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  program.kill('SIGKILL');
  return program.ended;
}

/** What one life has printed: no answer twice. */
function linesOfLife({ stdout }: ProgramEnd): string[] {
  const lines = completeLines(stdout);
  expect(new Set(lines).size).toBe(lines.length);
  return lines;
}

/** How many calls of one life the server sees before the kill; now and then none. */
function momentOf(random: () => number): number {
  return random() < 0.15 ? 0 : 1 + Math.floor(random() * (CONCURRENCY * 1.25));
}

describe('killed at any moment', () => {
  it(`answers every document exactly once after ${KILLS} kills (KILL_SEED=${SEED})`, async () => {
    simulator = await startSimulatorProcess({ latencyMs: 30 });
    const documents = numberedDocuments(DOCUMENTS);
    workspace.writeDocuments('docs.jsonl', documents);
    const settings = ['--base-url', simulator.url, '--concurrency', String(CONCURRENCY), '-o', '-'];
    const printed: string[] = [];
    const random = seededRandom(SEED);

    let kills = 0;
    let command = ['run', 'docs.jsonl'];
    while (kills < KILLS) {
      const { calls } = await simulator.books();
      const moment = momentOf(random);
      const end = await killAt(workspace.start([...command, ...settings]), moment === 0 ? 0 : calls + moment);
      printed.push(...linesOfLife(end));
      if (end.exitCode === 2) {
        // The import was cut off, and says so.
        expect(end.stderr).toContain('llm-batch run ');
        command = ['run', 'docs.jsonl'];
        continue;
      }
      expect(end.signal, `life ${kills + 1} ended by itself: ${end.stderr}`).toBe('SIGKILL');
      kills += 1;
      command = ['resume'];
    }
    let last = await workspace.run([...command, ...settings]);
    if (last.exitCode === 2) last = await workspace.run(['run', 'docs.jsonl', ...settings]);
    expect(last.exitCode, last.stderr).toBe(0);
    printed.push(...linesOfLife(last));

    const { stdout } = await workspace.run(['results', '-o', '-']);
    const lines = completeLines(stdout);
    const results = lines.map((line) => JSON.parse(line));
    expect(results.map(({ id, line, output }) => ({ id, line, output }))).toEqual(
      documents.map(({ id, text }, index) => ({ id, line: index + 1, output: answerTo(text) })),
    );
    // Answers are the same whoever asks; the request id tells whether it is this very one that was kept.
    expect(printed.filter((line) => !lines.includes(line)).map((line) => JSON.parse(line).id)).toEqual([]);
    // The last life prints what all the others had stored.
    expect(linesOfLife(last).sort()).toEqual([...lines].sort());

    const { calls, documents: counts } = await workspace.status();
    const books = await simulator.books();
    expect(counts).toMatchObject({ total: DOCUMENTS, completed: DOCUMENTS, failed: 0, pending: 0 });
    expect(books.documents).toBe(DOCUMENTS);
    expect(books.repeatedCalls).toBeLessThanOrEqual(KILLS * CONCURRENCY + CONCURRENCY);
    // A call is written down before it leaves: the ledger knows of every repeat the server saw, and of calls that
    // never got there.
    expect(calls.repeated).toBeGreaterThanOrEqual(books.repeatedCalls);
    expect(calls).toEqual({
      made: DOCUMENTS + calls.repeated,
      open: 0,
      failed: 0,
      repeated: calls.repeated,
      late: 0,
    });
    // Those that were open at each kill, and as many that were ready.
    expect(calls.repeated).toBeLessThanOrEqual(2 * KILLS * CONCURRENCY);
    expect(books.defect).toBeNull();
    expect(workspace.integrity()).toBe('ok');
  }, 180_000);
});

describe.each<
  [way: string, flags: string[], documents: number, lives: number, outputOf: (text: string) => unknown]
>([
  ['embeddings', ['--endpoint', 'embeddings'], DOCUMENTS, 5, simulatedVector],
  ['completions', ['--endpoint', 'completions'], 120, 2, answerTo],
  ['moderations', ['--endpoint', 'moderations'], 120, 2, simulatedModeration],
  ['responses', ['--endpoint', 'responses'], 120, 2, answerTo],
  ['requests that share calls', ['--group-url', '/batch'], 120, 2, answerTo],
])('killed at any moment of a run of %s', (way, wayFlags, documentCount, lives, outputOf) => {
  const GROUP = 10;
  const OPEN_CALLS = 8;

  it(`gives each its own answer, and the shares of each call add up (KILL_SEED=${SEED})`, async () => {
    const takesOne = way === 'responses';
    const misplaced = takesOne ? {} : { shuffled: 0.5, 'missing-index': 0.05 };
    simulator = await startSimulatorProcess({ latencyMs: 30, errorRate: { ...misplaced, '503': 0.05 } });
    const documents = numberedDocuments(documentCount).map(({ id, text }, index) => ({
      id,
      text: index === 77 ? `${text} [[simulate:bad-request]]` : text,
    }));
    workspace.writeDocuments('docs.jsonl', documents);
    const flags = ['--base-url', simulator.url, '--concurrency', String(OPEN_CALLS), '--quiet'];
    const first = ['run', 'docs.jsonl', ...wayFlags, '--group-max', String(GROUP)];
    const random = seededRandom(SEED);
    let command = first;
    for (let life = 0; life < lives; life += 1) {
      const { calls } = await simulator.books();
      const end = await killAt(
        workspace.start([...command, ...flags]),
        calls + 1 + Math.floor(random() * OPEN_CALLS),
      );
      if (end.exitCode !== 2) command = ['resume'];
    }
    const last = await workspace.run([...command, ...flags]);
    expect(last.exitCode, last.stderr).toBe(3);

    const results = jsonLines<{ id: string; output: unknown }>(
      (await workspace.run(['results', '-o', '-'])).stdout,
    );
    const answered = documents.filter((_document, index) => index !== 77);
    expect(results.map(({ id, output }) => ({ id, output }))).toEqual(
      answered.map(({ id, text }) => ({ id, output: outputOf(text) })),
    );
    const { documents: counts } = await workspace.status();
    expect(counts).toMatchObject({ completed: documentCount - 1, failed: 1, pending: 0 });
    const books = await simulator.books();
    const [ledger] = workspace.query<{ tokens: number; odd: number }>(
      `SELECT sum(input_tokens) AS tokens, count(*) FILTER (WHERE parts > 1 AND shared <> input_tokens) AS odd
       FROM (SELECT calls.input_tokens, count(*) AS parts, sum(call_tasks.input_tokens) AS shared
             FROM calls JOIN call_tasks ON call_tasks.call_id = calls.id
             WHERE calls.input_tokens IS NOT NULL GROUP BY calls.id)`,
    );
    // What a kill cut off is in the server's books alone.
    expect(ledger?.tokens).toBeLessThanOrEqual(books.promptTokens);
    expect(ledger?.odd).toBe(0);
    expect(books.defect).toBeNull();
    expect(workspace.integrity()).toBe('ok');
  }, 180_000);
});

describe('killed at any moment of a run whose documents share answers', () => {
  const REQUESTS = 150;
  const OPEN_CALLS = 8;
  // More than a page of pairing and of settling.
  const SHARING_DOCUMENTS = 3_000;

  it('answers every document once, equal ones alike, and calls for each request alone', async () => {
    simulator = await startSimulatorProcess({ latencyMs: 20 });
    const documents = numberedDocuments(SHARING_DOCUMENTS).map(({ id }, index) => ({
      id,
      text: `This is request number ${index % REQUESTS}.`,
    }));
    workspace.writeDocuments('docs.jsonl', documents);
    const output = ['-o', '-', '--only-new'];
    const settings = ['--base-url', simulator.url, '--concurrency', String(OPEN_CALLS), ...output];
    const run = ['run', 'docs.jsonl', '--dedupe'];
    const printed: string[] = [];
    const random = seededRandom(SEED);

    let kills = 0;
    let command = run;
    while (kills < KILLS) {
      const program = workspace.start([...command, ...settings]);
      // Every third dies at the first shared answer it prints, in the middle of handing them out.
      const end =
        kills % 3 === 2
          ? await killOnceItPrints(program)
          : await killAt(program, (await simulator.books()).calls + Math.floor(random() * OPEN_CALLS));
      printed.push(...completeLines(end.stdout));
      command = end.exitCode === 2 ? run : ['resume'];
      if (end.exitCode === 2) continue;
      expect(end.signal, `life ${kills + 1} ended by itself: ${end.stderr}`).toBe('SIGKILL');
      kills += 1;
    }
    const last = await workspace.run([...command, ...settings]);
    expect(last.exitCode, last.stderr).toBe(0);
    printed.push(...completeLines(last.stdout));

    const lines = completeLines((await workspace.run(['results', '-o', '-'])).stdout);
    const results = lines.map((line) => JSON.parse(line));
    expect(results.map(({ id, line, output }) => ({ id, line, output }))).toEqual(
      documents.map(({ id, text }, index) => ({ id, line: index + 1, output: answerTo(text) })),
    );
    // Each request has one call whose answer was kept: the others have its id.
    const requestIds = new Set(documents.map(({ text }, index) => `${text} ${results[index].request_id}`));
    expect(requestIds.size).toBe(REQUESTS);
    const kept = new Set(lines);
    expect(printed.filter((line) => !kept.has(line))).toEqual([]);
    expect(new Set(printed).size).toBe(printed.length);

    const books = await simulator.books();
    expect(books.documents).toBe(REQUESTS);
    expect(books.repeatedCalls).toBeLessThanOrEqual((KILLS + 1) * OPEN_CALLS);
    const status = await workspace.status();
    expect(status).toMatchObject({
      documents: { total: SHARING_DOCUMENTS, completed: SHARING_DOCUMENTS, failed: 0, pending: 0 },
      shared: { within_run: SHARING_DOCUMENTS - REQUESTS, from_earlier_runs: 0, waiting: 0 },
      calls: { made: REQUESTS + status.calls.repeated, open: 0, failed: 0 },
    });
    expect(status.calls.repeated).toBeGreaterThanOrEqual(books.repeatedCalls);
    expect((await workspace.run(['doctor'])).stdout).toContain('Every count and sum agrees with its rows.');
    expect(workspace.integrity()).toBe('ok');
  }, 120_000);

  async function killOnceItPrints(program: RunningProgram): Promise<ProgramEnd> {
    await waitFor('an answer', () => program.stdout() !== '');
    program.kill('SIGKILL');
    return program.ended;
  }
});

describe('killed between an answer and its commit', () => {
  it('prints nothing that cannot be committed', async () => {
    simulator = await startSimulatorProcess({ latencyMs: 300 });
    const concurrency = 8;
    workspace.writeDocuments('docs.jsonl', numberedDocuments(24));
    const settings = ['--base-url', simulator.url, '--concurrency', String(concurrency), '-o', '-'];
    const program = workspace.start(['run', 'docs.jsonl', ...settings]);
    // The first call goes alone; the others leave when it is answered.
    await waitFor('the first answer', () => program.stdout() !== '');
    await waitFor('the calls', async () => (await simulator.books()).openCalls === concurrency);
    const before = program.stdout();

    // Another program holds the store's write lock while the answers come in.
    const lock = new Database(workspace.storePath);
    lock.exec('BEGIN IMMEDIATE');
    await waitFor('the answers', async () => (await simulator.books()).answered === 1 + concurrency);
    // The program now tries to commit, over and over. Whatever it prints meanwhile it has no right to.
    const printed = waitFor('a line', () => program.stdout() !== before, 1_500);
    await expect(printed).rejects.toThrow('in vain');
    program.kill('SIGKILL');
    expect((await program.ended).signal).toBe('SIGKILL');
    lock.close();

    const { exitCode, stdout } = await workspace.run(['resume', ...settings]);
    expect(exitCode).toBe(0);
    expect(completeLines(stdout)).toHaveLength(24);
    // The answers that came, and the calls that were ready to take their slots.
    const { repeatedCalls } = await simulator.books();
    expect(repeatedCalls).toBeGreaterThanOrEqual(concurrency);
    expect(repeatedCalls).toBeLessThanOrEqual(2 * concurrency);
    const { calls } = await workspace.status();
    expect(calls).toMatchObject({ made: 24 + repeatedCalls, repeated: repeatedCalls });
  });
});

describe('a document that alone is in progress at three crashes', () => {
  it('is parked as failed, and can be retried', async () => {
    simulator = await startSimulatorProcess();
    workspace.writeDocuments('docs.jsonl', [
      { id: 'poison', text: '[[simulate:hang]] I take everything down with me.' },
      ...numberedDocuments(3),
    ]);
    const settings = ['--base-url', simulator.url, '--concurrency', '1'];
    // A suspect of two crashes waits until the three others are done.
    for (const calls of [1, 2, 6]) {
      const command = calls === 1 ? ['run', 'docs.jsonl'] : ['resume'];
      expect((await killAt(workspace.start([...command, ...settings]), calls)).signal).toBe('SIGKILL');
    }
    const resumed = await workspace.run(['resume', ...settings]);
    expect(resumed.exitCode, resumed.stderr).toBe(3);
    expect(resumed.stderr).toContain('parked');
    expect(await workspace.status()).toMatchObject({
      documents: { completed: 3, failed: 1 },
      failed_by_kind: { poison: 1 },
    });

    await simulator.heal();
    expect((await workspace.run(['retry', '--kind', 'poison'])).exitCode).toBe(0);
    expect((await workspace.run(['resume', ...settings])).exitCode).toBe(0);
    expect(await workspace.status()).toMatchObject({ documents: { completed: 4, failed: 0 } });
  });
});

describe('killed during the import', () => {
  it('says how to go on, and goes on', async () => {
    simulator = await startSimulatorProcess();
    const documents = numberedDocuments(1_100);
    const lines = documents.map((document) => `${JSON.stringify(document)}\n`);
    const settings = ['--base-url', simulator.url, '--concurrency', '64'];
    // A pipe by the input's name: it gives a part and then keeps still.
    execFileSync('mkfifo', [workspace.path('slow.jsonl')]);
    const program = workspace.start(['run', 'slow.jsonl', ...settings, '-o', 'out.jsonl']);
    const pipe = createWriteStream(workspace.path('slow.jsonl')).on('error', () => undefined);
    pipe.write(lines.slice(0, 1_050).join(''));
    await waitFor('a part of the documents', () => storedTasks() >= 1_000);
    program.kill('SIGKILL');
    await program.ended;
    pipe.destroy();
    expect(storedTasks()).toBeLessThan(documents.length);

    const resumed = await workspace.run(['resume', ...settings]);
    expect(resumed.exitCode).toBe(2);
    expect(resumed.stderr).toContain('was cut off');
    expect(resumed.stderr).toContain(`llm-batch run ${workspace.path('slow.jsonl')}`);
    expect((await simulator.books()).calls).toBe(0);

    rmSync(workspace.path('slow.jsonl'));
    workspace.write('slow.jsonl', lines.join(''));
    const again = await workspace.run(['run', 'slow.jsonl', ...settings, '-o', 'out.jsonl']);
    expect(again.exitCode, again.stderr).toBe(0);
    expect(workspace.readLines('out.jsonl').map(({ id, output }) => ({ id, output }))).toEqual(
      documents.map(({ id, text }) => ({ id, output: answerTo(text) })),
    );
    expect((await simulator.books()).calls).toBe(documents.length);
    expect(workspace.integrity()).toBe('ok');
  });

  function storedTasks(): number {
    try {
      return workspace.query<{ tasks: number }>('SELECT count(*) AS tasks FROM tasks')[0]?.tasks ?? 0;
    } catch {
      return 0; // There is no store yet.
    }
  }
});
