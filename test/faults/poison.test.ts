/**
 * A document that brings the process down: here the process is killed whenever the server sees it. It is found in a
 * few crashes and parked, whatever was in progress beside it, and no other document is blamed.
 */
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { ProgramEnd } from '../support/program.js';
import { type SimulatorProcess, startSimulatorProcess } from '../support/simulator-process.js';
import { answerTo, numberedDocuments, Workspace } from '../support/workspace.js';

const DOCUMENTS = 60;
const POISON_LINE = 23;

let workspace: Workspace;
let simulator: SimulatorProcess;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorProcess({ latencyMs: 5 });
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

async function poisonSeen(): Promise<number> {
  return (await simulator.books()).behaviours['hang'] ?? 0;
}

/** Starts the program and kills it once the server has seen the poison again. */
async function live(args: readonly string[]): Promise<ProgramEnd> {
  const seenBefore = await poisonSeen();
  const program = workspace.start(args);
  let ended = false;
  void program.ended.then(() => {
    ended = true;
  });
  while (!ended && (await poisonSeen()) === seenBefore) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  program.kill('SIGKILL');
  return program.ended;
}

// One at a time it is known at once, of a crowd it is known who was in it twice, and then one after the other.
it.each([
  [1, 3],
  [8, 5],
  [40, 5],
])(
  'is found at concurrency %i in %i crashes at most, and all others are answered',
  async (concurrency, crashes) => {
    const documents = numberedDocuments(DOCUMENTS);
    const poison = { id: 'poison', text: '[[simulate:hang]] I take everything down with me.' };
    documents.splice(POISON_LINE - 1, 1, poison);
    workspace.writeDocuments('docs.jsonl', documents);
    const settings = ['--base-url', simulator.url, '--concurrency', String(concurrency)];

    let killed = 0;
    let end = await live(['run', 'docs.jsonl', ...settings]);
    while (end.signal === 'SIGKILL' && killed <= crashes) {
      killed += 1;
      end = await live(['resume', ...settings]);
    }

    // Fewer where it happened to be the only one open at the first crashes, too.
    expect(killed).toBeGreaterThanOrEqual(3);
    expect(killed).toBeLessThanOrEqual(crashes);
    expect(end.exitCode, end.stderr).toBe(3);
    expect(await workspace.status()).toMatchObject({
      documents: { completed: DOCUMENTS - 1, failed: 1, pending: 0 },
      failed_by_kind: { poison: 1 },
    });
    expect(workspace.readLines('docs.errors.jsonl')).toMatchObject([
      { id: 'poison', line: POISON_LINE, error: { kind: 'poison' } },
    ]);
    const answered = documents.filter((document) => document !== poison);
    expect((await workspace.results()).map(({ id, output }) => ({ id, output }))).toEqual(
      answered.map(({ id, text }) => ({ id, output: answerTo(text) })),
    );
    expect(await poisonSeen()).toBe(killed);
  },
  180_000,
);
