/**
 * One case of each kind that is cheap, for every run of the tests; the whole suite is `npm run test:faults`. And a
 * check that its table in docs/durability.md tells of every case and of no other.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Provider } from '../../../src/provider/provider.js';
import { simulatedAnswer } from '../../../src/simulator/answer.js';
import { FakeClock } from '../../support/fake-clock.js';
import { FaultRun, PLANTED_KEY } from '../../support/fault-run.js';
import { HAS_STRACE } from '../../support/fault-tools.js';
import { type Evidence, violationsOf } from '../../support/invariants.js';
import { judgedProvider } from '../../support/judged-provider.js';
import { runUntil, WHOLE_PROGRAM } from '../../support/program-copy.js';
import { type SimulatorProcess, startSimulatorProcess } from '../../support/simulator-process.js';
import type { StoredFacts, StoredTask } from '../../support/stored-facts.js';
import { StoredRun } from '../../support/stored-run.js';
import { waitFor } from '../../support/wait-for.js';
import { killAtPoint, killAtSystemCall } from './kill-cases.js';
import { cutPowerEverywhere } from './power-cut-cases.js';
import { resumeWithSalvage } from './salvage-cases.js';

let simulator: SimulatorProcess;

beforeAll(async () => {
  simulator = await startSimulatorProcess({ latencyMs: 10 });
});

afterAll(() => simulator.stop());

describe('in short', () => {
  it.skipIf(!HAS_STRACE)('a kill at a write loses nothing (needs strace)', async () => {
    const { fired, violations } = await killAtSystemCall(simulator, 'pwrite64', 150);
    expect(violations).toEqual([]);
    expect(fired).toBe(true);
  });

  it('a kill between an answer and its commit loses nothing', async () => {
    const { fired, printed, violations } = await killAtPoint(simulator, 'before a commit', 3);
    expect(violations).toEqual([]);
    expect(fired).toBe(true);
    expect(printed).toBeGreaterThan(0);
  });

  it.skipIf(!HAS_STRACE)('a power cut loses nothing that was acknowledged (needs strace)', async () => {
    const report = await cutPowerEverywhere({ simulator, program: WHOLE_PROGRAM, documents: 12, seed: 3 });
    expect(report).toMatchObject({ acknowledged: 12, cutsWithLoss: 0, damages: [] });
    expect(report.cuts).toBeGreaterThan(10);
  });

  it('answers salvaged too late change nothing', async () => {
    const report = await resumeWithSalvage(simulator, WHOLE_PROGRAM, 'too late');
    expect(report).toMatchObject({ applied: 0, fileIsLeft: false, violations: [] });
  });
});

describe('a store that cannot grow, in short', () => {
  let run: FaultRun;

  afterEach(() => run.remove());

  it('holds the run up, and costs nothing', async () => {
    run = new FaultRun({ simulator, documents: 60, concurrency: 4 });
    const program = run.start('run', { wrapper: runUntil(WHOLE_PROGRAM, 'full', 12) });
    await waitFor('the store to be full', () => program.stderr().includes('The disk is full'));
    await waitFor('open calls to end', async () => (await simulator.books()).openCalls === 0);
    expect(await run.calls()).toBeLessThan(60);
    run.workspace.write('room', '');
    const end = await program.ended;
    expect(end.exitCode, end.stderr).toBe(0);
    expect(end.stderr).toContain('the store can be written again');
    expect(await run.violations(0)).toEqual([]);
    run.workspace.write('leak.txt', `key=${PLANTED_KEY}`);
    expect(await run.violations(0)).toEqual(['the key is in leak.txt']);
  });
});

describe("a store's thread that ends, in short", () => {
  it('ends the run as a broken store does, and no answer that had come is asked for again', async () => {
    const run = new FaultRun({ simulator, documents: 60, concurrency: 4 });
    try {
      const end = await run.live('run', { wrapper: runUntil(WHOLE_PROGRAM, 'dead thread', 5) });
      expect(end.exitCode, end.stderr).toBe(5);
      expect(end.stderr).toMatch(/The thread that keeps .*llm-batch\.db has ended/);
      expect(await run.calls()).toBeLessThan(60);
      expect((await run.finish()).exitCode).toBe(0);
      expect(await run.violations(0)).toEqual([]);
    } finally {
      run.remove();
    }
  });
});

describe('a wall clock that jumps, in short', () => {
  it.each([
    ['back', -3_600_000],
    ['forward', 3_600_000],
  ])('%s by an hour freezes nothing that waits for its next attempt', async (_, byMs) => {
    const clock = new FakeClock();
    const judged = judgedProvider({ latencyMs: 100 }, clock);
    const texts = Array.from({ length: 20 }, (_each, index) => `[[simulate:500-then-ok 1]] Number ${index}.`);
    const run = await StoredRun.of(texts, { concurrency: 4, guard: false }, clock);
    let calls = 0;
    const jumping: Provider = {
      ...judged,
      async send(request, options) {
        const reply = await judged.send(request, options);
        calls += 1;
        if (calls === 10) clock.jumpWallClock(byMs);
        return reply;
      },
    };
    try {
      const { end } = await run.execute(jumping, () => 0.5);
      expect(end).toEqual({ reason: 'drained' });
      expect(judged.arrivals).toHaveLength(40);
      expect(clock.monotonicMs()).toBeLessThan(10 * 60_000);
    } finally {
      await run.remove();
    }
  });
});

describe('the invariants', () => {
  const documents = ['one', 'two'].map((id) => ({ id, text: `Document ${id}.` }));
  const answers = documents.map(({ text }) =>
    simulatedAnswer({ messages: [{ role: 'user', content: text }] }),
  );
  const tasks: readonly StoredTask[] = documents.map(({ id }, index) => ({
    key: id,
    state: 'completed',
    attempts: 1,
    results: 1,
    outputJson: JSON.stringify(answers[index]?.text),
    requestId: `request-${id}`,
  }));
  const lines = tasks.map(({ key, outputJson, requestId }) =>
    JSON.stringify({ id: key, output: JSON.parse(outputJson ?? ''), request_id: requestId }),
  );
  const [first, second] = tasks as [StoredTask, StoredTask];
  const store: StoredFacts = {
    tasks,
    states: { completed: 2 },
    countedStates: { completed: 2 },
    calls: { made: 2, open: 0, lost: 0 },
    integrity: 'ok',
    orphans: 0,
  };
  const callsByDocument = Object.fromEntries(answers.map(({ fingerprint }) => [fingerprint, 1]));
  const sound: Evidence = {
    documents,
    printed: lines,
    store,
    written: lines,
    books: { callsByDocument, defect: null },
    mostCalls: 2,
    finished: true,
  };
  const withTasks = (...changed: readonly StoredTask[]): Partial<Evidence> => ({
    store: { ...store, tasks: changed },
  });

  it('find nothing wrong with a run that went well', () => {
    expect(violationsOf(sound)).toEqual([]);
  });

  it.each<[string, Partial<Evidence>]>([
    ['a damaged store', { store: { ...store, integrity: 'row 3 missing' } }],
    ['rows that point at nothing', { store: { ...store, orphans: 1 } }],
    ['counters that are wrong', { store: { ...store, countedStates: { completed: 1, ready: 1 } } }],
    ['a document that is gone', withTasks(first)],
    ['a document that is there twice', withTasks(first, second, second)],
    ['an answer without its text', withTasks(first, { ...second, results: 0 })],
    ['an answer too many', { finished: false, ...withTasks(first, { ...second, state: 'ready' }) }],
    ['an end that is none', withTasks(first, { ...second, state: 'failed' })],
    [
      'a printed answer that is not kept',
      {
        finished: false,
        written: lines.slice(1),
        ...withTasks({ ...first, state: 'ready', results: 0, outputJson: null }, second),
      },
    ],
    ['a printed answer that was replaced', withTasks({ ...first, requestId: 'another' }, second)],
    ['an answer printed twice', { printed: [...lines, ...lines] }],
    ['swapped answers', { printed: [], ...withTasks({ ...first, outputJson: second.outputJson }, second) }],
    ['an incomplete file', { printed: [], written: lines.slice(1) }],
    ['a file in the wrong order', { written: [...lines].reverse() }],
    ['a file that says something else', { written: lines.map((line) => line.replace('Sim', 'sim')) }],
    ['calls too many', { mostCalls: 1 }],
    ['a call that the ledger does not know', { store: { ...store, calls: { ...store.calls, made: 1 } } }],
    ['a call that never ended', { store: { ...store, calls: { ...store.calls, open: 1 } } }],
    ['an answer that nobody gave', { books: { callsByDocument: {}, defect: null } }],
    ['a witness that is none', { books: { callsByDocument, defect: 'the log broke off' } }],
  ])('find %s', (_, broken) => {
    expect(violationsOf({ ...sound, ...broken })).not.toEqual([]);
  });
});

describe('the table in docs/durability.md', () => {
  const FOLDER = import.meta.dirname;
  const PAGE = join(FOLDER, '..', '..', '..', 'docs', 'durability.md');

  /** Cases as the page names them, from the source as it is formatted. */
  function casesIn(file: string): string[] {
    const lines = readFileSync(join(FOLDER, file), 'utf8').split('\n');
    const cases: string[] = [];
    let group = '';
    for (const [index, line] of lines.entries()) {
      group = /^describe.*\('([^']+)', /.exec(line)?.[1] ?? group;
      const title =
        /^ {2}(?:it\b|\]).*\('([^']+)', /.exec(line)?.[1] ??
        (lines[index - 1]?.endsWith(')(') ? /^ {4}'([^']+)',$/.exec(line)?.[1] : undefined);
      if (title !== undefined) cases.push(`${file}: ${group} › ${title.replace(/"?%s"?/g, '…')}`);
    }
    const written = lines.filter((line) => /^ {2}it\b/.test(line)).length;
    expect(cases, `titles of ${file} that can be read`).toHaveLength(written);
    return cases;
  }

  it('tells of every case, and of no other', () => {
    const files = readdirSync(FOLDER).filter((name) => name.endsWith('.test.ts') && name !== 'short.test.ts');
    const page = readFileSync(PAGE, 'utf8');
    const told = [...page.matchAll(/^\|.*\| (\S+\.test\.ts: [^|]+) \|$/gm)].map((match) => match[1]);
    expect(told.sort()).toEqual(files.flatMap(casesIn).sort());
  });
});
