/** After a power cut everything that was acknowledged is there. Needs strace, which records what was synced when. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FaultRun } from '../../support/fault-run.js';
import { HAS_STRACE } from '../../support/fault-tools.js';
import { diskEvents } from '../../support/power-cut.js';
import { temporaryFolder } from '../../support/program.js';
import { type Patch, patchedProgram, WHOLE_PROGRAM } from '../../support/program-copy.js';
import { type SimulatorProcess, startSimulatorProcess } from '../../support/simulator-process.js';
import { recording } from '../../support/strace.js';
import { cutPowerEverywhere, type PowerCutReport } from './power-cut-cases.js';

const DATABASE = 'store/sqlite/database.js';
/** A checkpoint every 16 MiB would not come in so short a run. */
const OFTEN_CHECKPOINTED: readonly Patch[] = [
  { file: DATABASE, from: 'CHECKPOINT_PAGES = 4_000', to: 'CHECKPOINT_PAGES = 40' },
];
const SYNCED_SELDOM: readonly Patch[] = [
  { file: 'store/sqlite/connection.js', from: 'await this.#log.sync();', to: '' },
];
const SEED = Number(process.env['POWER_CUT_SEED'] ?? 20_252);

describe.skipIf(!HAS_STRACE)('a power cut (needs strace)', () => {
  let simulator: SimulatorProcess;
  const folder = temporaryFolder();

  beforeAll(async () => {
    simulator = await startSimulatorProcess({ latencyMs: { min: 1, max: 20 } });
  });

  afterAll(async () => {
    await simulator.stop();
    folder.remove();
  });

  async function cut(patches: readonly Patch[]): Promise<PowerCutReport> {
    const program =
      patches.length === 0 ? WHOLE_PROGRAM : patchedProgram(`${folder.path}/${patches[0]?.to}`, patches);
    const report = await cutPowerEverywhere({ simulator, program, documents: 60, seed: SEED });
    const { damages, ...figures } = report;
    console.info(`seed ${SEED}: ${JSON.stringify({ ...figures, damaged: damages.length })}`);
    expect(report.acknowledged).toBe(60);
    expect(report.cuts).toBeGreaterThan(60);
    return report;
  }

  it('at any acknowledgement loses no answer that was acknowledged', async () => {
    expect(await cut([])).toMatchObject({ cutsWithLoss: 0, mostLost: 0, damages: [] });
  });

  it('while the log is copied into the store loses no answer that was acknowledged', async () => {
    const report = await cut(OFTEN_CHECKPOINTED);
    expect(report).toMatchObject({ cutsWithLoss: 0, mostLost: 0, damages: [] });
    expect(report.checkpointWrites).toBeGreaterThan(20);
  });

  it('would lose acknowledged answers without the sync after a commit, so this test can fail', async () => {
    const { cutsWithLoss, mostLost } = await cut(SYNCED_SELDOM);
    expect(cutsWithLoss).toBeGreaterThan(20);
    expect(mostLost).toBeGreaterThan(10);
  });

  it('finds the results file synced before it has its name, and its folder afterwards', async () => {
    const run = new FaultRun({ simulator, documents: 5, concurrency: 2 });
    try {
      const trace = run.workspace.path('trace.txt');
      const wrapper = recording(['write', 'fsync', 'link', 'unlink'], trace);
      expect((await run.live('run', { prints: false, wrapper })).exitCode).toBe(0);
      const about = [...diskEvents(trace)]
        .filter(({ path }) => path.endsWith('.partial') || path === run.workspace.folder)
        .map(({ type, path }) => `${type} ${path.endsWith('.partial') ? 'file' : 'folder'}`);
      expect(about.slice(about.indexOf('append file'))).toEqual([
        'append file',
        'sync file',
        'link file',
        'unlink file',
        'sync folder',
      ]);
    } finally {
      run.remove();
    }
  });
});
