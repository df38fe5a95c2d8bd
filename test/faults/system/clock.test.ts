/** The wall clock is set while a run is at work, or between two: limits hold, and nothing waits for an hour. */
import { writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { afterEach, describe, expect, it } from 'vitest';
import { FaultRun } from '../../support/fault-run.js';
import { FAKETIME_LIBRARY } from '../../support/fault-tools.js';
import { type SimulatorProcess, startSimulatorProcess } from '../../support/simulator-process.js';
import { waitFor } from '../../support/wait-for.js';

const AN_HOUR_S = 3_600;
const CONCURRENCY = 4;

let simulator: SimulatorProcess;
let run: FaultRun;

afterEach(async () => {
  await simulator.stop();
  run.remove();
});

describe.skipIf(FAKETIME_LIBRARY === null)('a wall clock that jumps (needs libfaketime)', () => {
  /** Only wall time is faked, and anew at each look, since it is to jump under a process that runs. */
  function environment(): Record<string, string> {
    return {
      LD_PRELOAD: FAKETIME_LIBRARY ?? '',
      FAKETIME_TIMESTAMP_FILE: run.workspace.path('faketime.rc'),
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
  }

  function jump(toOffsetS: number): void {
    // By renaming it would be another file; one write of a few bytes is as good as whole.
    writeFileSync(run.workspace.path('faketime.rc'), `${toOffsetS < 0 ? '' : '+'}${toOffsetS}\n`);
  }

  /** How far apart the program has found the starts of its calls: tells that the clock has jumped for it. */
  function secondsBetweenCalls(): number {
    const database = new Database(run.workspace.storePath, { readonly: true });
    try {
      const spanMs = database
        .prepare<[], number>('SELECT max(started_at_ms) - min(started_at_ms) FROM calls')
        .pluck()
        .get();
      return (spanMs ?? 0) / 1_000;
    } finally {
      database.close();
    }
  }

  it.each([
    ['forward', AN_HOUR_S],
    ['back', -AN_HOUR_S],
  ])(
    'an hour %s freezes no document that waits for its next attempt, and sends none too often',
    async (_, byS) => {
      simulator = await startSimulatorProcess();
      run = new FaultRun({ simulator, documents: halfFailOnce(), concurrency: CONCURRENCY });
      jump(0);
      const program = run.start('run', { environment: environment() });
      await waitFor('some documents to wait', () => waiting() >= 2);
      jump(byS);
      expect(waiting()).toBeGreaterThan(0);
      const end = await program.ended;
      expect(end.exitCode, end.stderr).toBe(0);
      expect(secondsBetweenCalls()).toBeGreaterThan(AN_HOUR_S - 60);
      expect(await run.violations(6)).toEqual([]);
    },
  );

  it('to and fro never lets a call through that the limit does not allow', async () => {
    simulator = await startSimulatorProcess({ latencyMs: 20, rpm: 60 });
    run = new FaultRun({ simulator, documents: 66, concurrency: CONCURRENCY, flags: ['--rpm', '60'] });
    jump(0);
    const program = run.start('run', { environment: environment(), deadlineMs: 150_000 });
    await waitFor('half of the first minute', async () => (await run.calls()) >= 30, 60_000);
    jump(AN_HOUR_S);
    await waitFor('a call after the jump', async () => (await run.calls()) >= 40, 60_000);
    jump(-AN_HOUR_S);
    const end = await program.ended;
    expect(end.exitCode, end.stderr).toBe(0);
    expect(secondsBetweenCalls()).toBeGreaterThan(2 * AN_HOUR_S - 60);
    const books = await simulator.books();
    expect(books.violations.overLimit).toBe(0);
    expect(books.refusedByStatus).toEqual({});
    expect(await run.violations(0)).toEqual([]);
  });

  it('back by an hour between two lives does not freeze documents that wait', async () => {
    simulator = await startSimulatorProcess();
    run = new FaultRun({ simulator, documents: halfFailOnce(), concurrency: CONCURRENCY });
    jump(0);
    const program = run.start('run', { environment: environment() });
    await waitFor('some documents to wait', () => waiting() >= 2);
    program.kill('SIGKILL');
    await program.ended;
    expect(waiting()).toBeGreaterThan(0);
    jump(-AN_HOUR_S);
    const end = await run.finish({ environment: environment() });
    expect(end.exitCode, end.stderr).toBe(0);
    expect(secondsBetweenCalls()).toBeGreaterThan(AN_HOUR_S - 60);
    expect(await run.violations(6 + 2 * CONCURRENCY)).toEqual([]);
  });

  /** Twelve documents, of which six wait a second or two for their next attempt. */
  function halfFailOnce(): { id: string; text: string }[] {
    return Array.from({ length: 12 }, (_, index) => ({
      id: `doc-${index}`,
      text: index % 2 === 1 ? `[[simulate:500-then-ok 1]] Number ${index}.` : `Number ${index}.`,
    }));
  }

  function waiting(): number {
    try {
      return run.stored().states['delayed'] ?? 0;
    } catch {
      return 0; // There is no store yet.
    }
  }
});
