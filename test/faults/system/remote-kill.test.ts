/**
 * Kills the program for real at moments of a run by remote batches: while they are built, handed in, created, polled,
 * fetched and stored. The simulator, a process of its own, is the witness.
 */
import { existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { seededRandom } from '../../support/seeded-random.js';
import { type SimulatorProcess, startSimulatorProcess } from '../../support/simulator-process.js';
import { numberedDocuments, Workspace } from '../../support/workspace.js';

const DOCUMENTS = 600;
const MODELS = ['gpt-4o-mini', 'gpt-4o', 'gpt-4.1-mini'];
const SEED = Number(process.env['KILL_SEED'] ?? 20_251);
/** A kill comes so long after its moment at most, so that it meets what follows as well. */
const LATEST_MS = 40;

let workspace: Workspace;
let simulator: SimulatorProcess;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorProcess({ batches: { durationMs: 400 } });
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

const remote = async () => (await simulator.books()).remote;

const MOMENTS: Readonly<Record<string, () => Promise<boolean>>> = {
  'while files are built': async () => existsSync(workspace.path('llm-batch.db.batches')),
  'while files are handed in': async () => (await remote()).filesUploaded > 0,
  'while batches are created': async () => (await remote()).batches.length > 0,
  'while batches are worked off': async () =>
    (await remote()).batches.some(({ status }) => status === 'in_progress'),
  'while answers are fetched': async () => (await remote()).filesFetched > 0,
  'while answers are stored': async () => count(`state = 'completed'`) > 0,
};

function count(condition: string): number {
  const database = new Database(workspace.storePath, { readonly: true });
  try {
    return database.prepare<[], number>(`SELECT count(*) FROM tasks WHERE ${condition}`).pluck().get() ?? 0;
  } finally {
    database.close();
  }
}

const CASES = Object.keys(MOMENTS).flatMap((moment) => [moment, moment]);

describe('a run by remote batches that is killed', () => {
  it.each(CASES.map((moment, index) => [moment, SEED + index] as const))(
    '%s, creates no batch twice and answers every document once (KILL_SEED=%s)',
    async (moment, seed) => {
      const requests = numberedDocuments(DOCUMENTS).map(({ id, text }, line) => ({
        ...{ id, model: MODELS[line % MODELS.length], messages: [{ role: 'user', content: text }] },
      }));
      workspace.writeDocuments('docs.jsonl', requests);
      const flags = ['--base-url', simulator.url, '--poll-interval', '50ms', '-o', 'out.jsonl'];
      const life = workspace.start(['run', 'docs.jsonl', '--remote', ...flags]);
      let hasEnded = false;
      void life.ended.then(() => {
        hasEnded = true;
      });
      while (!hasEnded && !(await MOMENTS[moment]?.().catch(() => false))) {
        // Not in a closer circle: the one to be killed needs the processor too.
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      const delayMs = seededRandom(seed)() * LATEST_MS;
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      life.kill('SIGKILL');
      expect((await life.ended).signal, 'killed before its end').toBe('SIGKILL');

      const last = await workspace.run(['resume', ...flags]);
      expect(last.exitCode, last.stderr).toBe(0);
      expect(workspace.readLines('out.jsonl').map(({ id }) => id)).toEqual(requests.map(({ id }) => id));
      const books = await remote();
      const files = books.batches.map(({ metadata }) => metadata['llm_batch_file']);
      expect(new Set(files).size, 'batches of one file').toBe(files.length);
      expect(books.linesRun, 'what was billed').toBe(DOCUMENTS);
      const { stdout } = await workspace.run(['status', '--json']);
      const status = JSON.parse(stdout) as {
        calls: { made: number };
        tokens: { input: number; output: number };
      };
      expect(status.calls.made).toBe(DOCUMENTS);
      expect(status.tokens).toMatchObject({ input: books.promptTokens, output: books.completionTokens });
    },
  );
});
