/** A run is recorded, and the power is cut at every moment at which it had acknowledged something. */
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { openStore } from '../../../src/store/open.js';
import { FaultRun } from '../../support/fault-run.js';
import { diskEvents, POWER_CUT_CALLS, ReplayedDisk } from '../../support/power-cut.js';
import { type ProgramUnderTest, runInstead } from '../../support/program-copy.js';
import { seededRandom } from '../../support/seeded-random.js';
import type { SimulatorProcess } from '../../support/simulator-process.js';
import { readStore } from '../../support/stored-facts.js';
import { recording } from '../../support/strace.js';
import type { ResultLine } from '../../support/workspace.js';

const STORE_FILES = ['llm-batch.db', 'llm-batch.db-wal', 'llm-batch.db-journal'];
/** Besides the moments of acknowledgement, which come in groups. */
const OTHER_CUTS_EVERY = 40;

export interface PowerCutReport {
  readonly cuts: number;
  /** Cuts after which some acknowledged answer was gone, and how many the worst of them lost. */
  readonly cutsWithLoss: number;
  readonly mostLost: number;
  /** What made a store useless. */
  readonly damages: readonly string[];
  readonly acknowledged: number;
  /** Writes to the store itself, as against its log, while answers were being acknowledged. */
  readonly checkpointWrites: number;
}

export interface PowerCutOptions {
  readonly simulator: SimulatorProcess;
  readonly program: ProgramUnderTest;
  readonly documents: number;
  readonly seed: number;
}

export async function cutPowerEverywhere(options: PowerCutOptions): Promise<PowerCutReport> {
  const { simulator, program, documents, seed } = options;
  const run = new FaultRun({ simulator, documents, concurrency: 4 });
  try {
    const { workspace } = run;
    const trace = workspace.path('trace.txt');
    const acknowledgements = workspace.path('acknowledged.jsonl');
    // A file as standard output: each write to it then stands in the record, in its place among the syncs.
    const redirect = ['sh', '-c', `exec "$@" > '${acknowledgements}'`, 'sh'];
    const wrapper = [...recording(POWER_CUT_CALLS, trace), ...redirect, ...runInstead(program)];
    const end = await run.live('run', { wrapper });
    expect(end.exitCode, end.stderr).toBe(0);
    return await replay(run, trace, acknowledgements, seed);
  } finally {
    run.remove();
  }
}

async function replay(
  run: FaultRun,
  trace: string,
  acknowledgements: string,
  seed: number,
): Promise<PowerCutReport> {
  const { workspace } = run;
  const wanted = new Map(STORE_FILES.map((name) => [workspace.path(name), name]));
  const random = seededRandom(seed);
  const disk = new ReplayedDisk();
  let acknowledged = '';
  let changes = 0;
  let storeWrites = 0;
  let checkpointWrites = 0;
  let cuts = 0;
  let cutsWithLoss = 0;
  let mostLost = 0;
  const damages: string[] = [];
  for (const event of diskEvents(trace)) {
    const isAcknowledgement = event.type === 'append' && event.path === acknowledgements;
    if (isAcknowledgement) {
      acknowledged += event.text;
      checkpointWrites = storeWrites;
    } else if (disk.take(event)) {
      changes += 1;
      if (acknowledged !== '' && event.path === workspace.storePath) storeWrites += 1;
    }
    if (!isAcknowledgement && (event.type === 'append' || changes % OTHER_CUTS_EVERY !== 0)) continue;

    const lines = acknowledged.split('\n').slice(0, -1);
    for (const survives of [() => false, () => random() < 0.5, () => random() < 0.5]) {
      const folder = workspace.path('cut');
      mkdirSync(folder);
      disk.writeInto(folder, wanted, survives);
      cuts += 1;
      const after = await lookInto(join(folder, 'llm-batch.db'), lines);
      if (after.damage !== null) damages.push(after.damage);
      if (after.lost > 0) cutsWithLoss += 1;
      mostLost = Math.max(mostLost, after.lost);
      rmSync(folder, { recursive: true });
    }
  }
  const count = acknowledged.split('\n').length - 1;
  return { cuts, cutsWithLoss, mostLost, damages, acknowledged: count, checkpointWrites };
}

/** Opens the store as the next start of the program would, and looks for what had been acknowledged. */
async function lookInto(
  path: string,
  acknowledged: readonly string[],
): Promise<{ readonly damage: string | null; readonly lost: number }> {
  if (!existsSync(path)) return { damage: null, lost: acknowledged.length };
  try {
    const store = await openStore(path, { mode: 'write', clock: systemClock });
    await store.close();
    const { tasks, integrity, orphans } = readStore(path);
    if (integrity !== 'ok' || orphans > 0) return { damage: integrity, lost: 0 };
    const kept = new Map(tasks.map((task) => [task.key, task]));
    const lost = acknowledged.filter((line) => {
      const { id, output, request_id } = JSON.parse(line) as ResultLine;
      const task = kept.get(id);
      return task?.outputJson !== JSON.stringify(output) || task.requestId !== request_id;
    });
    return { damage: null, lost: lost.length };
  } catch (error) {
    return { damage: String(error), lost: 0 };
  }
}
