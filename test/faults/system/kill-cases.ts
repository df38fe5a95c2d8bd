/** One kill at one place, the way back, and what must hold before and after. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { FaultRun } from '../../support/fault-run.js';
import { type ProgramUnderTest, runInstead, runUntil, WHOLE_PROGRAM } from '../../support/program-copy.js';
import type { SimulatorProcess } from '../../support/simulator-process.js';
import { counting, faultsIn, injecting, type SystemCall } from '../../support/strace.js';

const DOCUMENTS = 24;
const CONCURRENCY = 4;

/**
 * After one kill: the calls that were open, and the answers that had come and waited for their commit. Together they are no
 * more than were in the ledger after the commit before: those that were open then and as many that were ready.
 */
const EXTRA_CALLS = 2 * CONCURRENCY;

export interface KillReport {
  /** False when the program ended before it came to that place. */
  readonly fired: boolean;
  /** Answers that had been printed by then. */
  readonly printed: number;
  /** Calls that the server saw twice. */
  readonly repeated: number;
  readonly violations: readonly string[];
}

/** Kills the program at the entry of its `nth` such call, then resumes it. */
export async function killAtSystemCall(
  simulator: SimulatorProcess,
  call: SystemCall,
  nth: number,
): Promise<KillReport> {
  const run = new FaultRun({ simulator, documents: DOCUMENTS, concurrency: CONCURRENCY });
  try {
    const trace = run.workspace.path('trace.txt');
    const wrapper = injecting({ call, fault: 'signal=SIGKILL', when: String(nth) }, trace);
    const end = await run.live('run', { wrapper });
    const fired = faultsIn(trace).killed;
    // Strace ends as its program did: nothing else may have ended it.
    expect(end.signal ?? end.exitCode, end.stderr).toBe(fired ? 'SIGKILL' : 0);
    return await aftermath(run, fired ? 1 : 0);
  } finally {
    run.remove();
  }
}

/** Kills the program where it reaches a named point for the `nth` time, then resumes it. */
export async function killAtPoint(
  simulator: SimulatorProcess,
  point: string,
  nth: number,
  program: ProgramUnderTest = WHOLE_PROGRAM,
): Promise<KillReport> {
  const run = new FaultRun({ simulator, documents: DOCUMENTS, concurrency: CONCURRENCY });
  try {
    const end = await run.live('run', { wrapper: runUntil(program, point, nth) });
    const fired = end.stderr.includes(`failpoint: killed at ${point}`);
    expect(end.signal ?? end.exitCode, end.stderr).toBe(fired ? 'SIGKILL' : 0);
    return await aftermath(run, fired ? 1 : 0, { wrapper: runInstead(program) });
  } finally {
    run.remove();
  }
}

/** Kills life after life, each where it reaches its point. Every kill must fire. */
export async function killAtPoints(
  simulator: SimulatorProcess,
  points: readonly string[],
): Promise<KillReport> {
  const run = new FaultRun({ simulator, documents: 3 * DOCUMENTS, concurrency: CONCURRENCY });
  try {
    for (const [index, point] of points.entries()) {
      // There is one rescue in each life, at its start.
      const wrapper = runUntil(WHOLE_PROGRAM, point, point === 'after a rescue' ? 1 : 2);
      const end = await run.live(index === 0 ? 'run' : 'resume', { wrapper });
      expect(end.signal, `${point}: ${end.stderr}`).toBe('SIGKILL');
    }
    return await aftermath(run, points.length);
  } finally {
    run.remove();
  }
}

async function aftermath(
  run: FaultRun,
  kills: number,
  options: { readonly wrapper?: readonly string[] } = {},
): Promise<KillReport> {
  const printed = run.printed.length;
  const last = await run.finish(options);
  expect(last.exitCode, last.stderr).toBe(0);
  const violations = await run.violations(kills * EXTRA_CALLS);
  return { fired: kills > 0, printed, repeated: (await run.calls()) - run.documents.length, violations };
}

export interface WritingReport {
  /** What the results file held right after the kill; null when there was none. */
  readonly found: string | null;
  /** What it holds in the end. */
  readonly whole: string;
  /** Temporary files that nobody cleaned up. */
  readonly leftovers: readonly string[];
  readonly violations: readonly string[];
}

/** Kills the program where its results file gets its name: for the first time, or in place of an older file. */
export async function killWhileNaming(
  simulator: SimulatorProcess,
  call: 'link' | 'rename',
): Promise<WritingReport> {
  const run = new FaultRun({ simulator, documents: DOCUMENTS, concurrency: CONCURRENCY });
  const { workspace } = run;
  const silent = { prints: false };
  try {
    if (call === 'rename') expect((await run.live('run', silent)).exitCode).toBe(0);
    const trace = workspace.path('trace.txt');
    const wrapper = injecting({ call, fault: 'signal=SIGKILL', when: '1' }, trace);
    await run.live(call === 'rename' ? 'resume' : 'run', { ...silent, wrapper });
    expect(faultsIn(trace).killed).toBe(true);
    const path = workspace.path('docs.results.jsonl');
    const found = existsSync(path) ? readFileSync(path, 'utf8') : null;
    expect((await run.finish(silent)).exitCode).toBe(0);
    return {
      found,
      whole: readFileSync(path, 'utf8'),
      leftovers: readdirSync(workspace.folder).filter((name) => name.endsWith('.partial')),
      violations: await run.violations(0),
    };
  } finally {
    run.remove();
  }
}

/** How often the program makes such a call, in one thread, when nobody kills it. */
export async function countSystemCalls(simulator: SimulatorProcess, call: SystemCall): Promise<number> {
  const run = new FaultRun({ simulator, documents: DOCUMENTS, concurrency: CONCURRENCY });
  try {
    const trace = run.workspace.path('trace.txt');
    const end = await run.live('run', { wrapper: counting(call, trace) });
    expect(end.exitCode, end.stderr).toBe(0);
    return faultsIn(trace).calls;
  } finally {
    run.remove();
  }
}

/** The first ones, where a store is made, and then evenly spread ones up to the last. */
export function spread(last: number, count: number): number[] {
  const moments = new Set([1, 2, 3]);
  for (let index = 1; index <= count; index += 1)
    moments.add(Math.max(1, Math.round((last * index) / count)));
  return [...moments].sort((one, other) => one - other);
}
