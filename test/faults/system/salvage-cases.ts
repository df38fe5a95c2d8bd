/** Answers that an earlier life could not store and left in a file: in time they count, too late they change nothing. */
import { existsSync, realpathSync, writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { expect } from 'vitest';
import type { Settlement } from '../../../src/core/outcome.js';
import { FaultRun } from '../../support/fault-run.js';
import { type ProgramUnderTest, runInstead, runUntil } from '../../support/program-copy.js';
import type { SimulatorProcess } from '../../support/simulator-process.js';

const CONCURRENCY = 4;
const SALVAGED = 'An answer that was paid for and could not be stored.';

export interface SalvageReport {
  readonly salvaged: number;
  /** Documents that have the salvaged answer in the end. */
  readonly applied: number;
  readonly fileIsLeft: boolean;
  readonly calls: number;
  readonly violations: readonly string[];
}

/** @param when whether the file is there at the next start, or after everything has been answered otherwise */
export async function resumeWithSalvage(
  simulator: SimulatorProcess,
  program: ProgramUnderTest,
  when: 'in time' | 'too late',
): Promise<SalvageReport> {
  const run = new FaultRun({ simulator, documents: 16, concurrency: CONCURRENCY });
  try {
    const killed = await run.live('run', { wrapper: runUntil(program, 'after a reply', CONCURRENCY) });
    expect(killed.signal, killed.stderr).toBe('SIGKILL');
    const outcomes = openCallsAnswered(run.workspace.storePath);
    expect(outcomes.length).toBeGreaterThan(0);
    const file = `${realpathSync(run.workspace.storePath)}.salvage.jsonl`;
    const wrapper = runInstead(program);
    if (when === 'too late') expect((await run.live('resume', { wrapper })).exitCode).toBe(0);
    writeFileSync(file, outcomes.map((outcome) => `${JSON.stringify(outcome)}\n`).join(''));
    const last = await run.finish({ wrapper });
    expect(last.exitCode, last.stderr).toBe(0);
    const salvagedJson = JSON.stringify(SALVAGED);
    return {
      salvaged: outcomes.length,
      applied: run.stored().tasks.filter(({ outputJson }) => outputJson === salvagedJson).length,
      fileIsLeft: existsSync(file),
      calls: await run.calls(),
      violations: await run.violations(2 * CONCURRENCY),
    };
  } finally {
    run.remove();
  }
}

/** What the life that was killed would have salvaged, had its calls come back and the disk been full. */
function openCallsAnswered(storePath: string): Settlement[] {
  const database = new Database(storePath, { readonly: true });
  const rows = database
    .prepare<[], { taskId: number; attemptToken: string; callId: number }>(
      `SELECT tasks.id AS taskId, tasks.attempt_token AS attemptToken, calls.id AS callId
       FROM tasks JOIN call_tasks ON task_id = tasks.id JOIN calls ON calls.id = call_id
       WHERE state = 'in_progress' AND finished_at_ms IS NULL`,
    )
    .all();
  database.close();
  const bill = {
    usage: { inputTokens: 10, outputTokens: 10, cachedTokens: 0, reasoningTokens: 0 },
    costMicroUsd: null,
  };
  return rows.map(({ taskId, attemptToken, callId }) => ({
    call: {
      ...bill,
      callId,
      finishedAtMs: 1_750_000_000_000,
      latencyMs: 100,
      httpStatus: 200,
      kind: null,
      requestId: `salvaged-${callId}`,
      message: null,
    },
    outcomes: [
      {
        action: 'completed',
        taskId,
        attemptToken,
        share: bill,
        atMs: 1_750_000_000_000,
        result: { outputJson: JSON.stringify(SALVAGED), model: 'a-model', finishReason: 'stop' },
      },
    ],
  }));
}
