/**
 * Does this suite notice? Each promise is broken in a copy of the program, and the case that guards it must turn red
 * there, and must be green for the program as it is. That answers are told of before they are committed needs no mutant:
 * what is printed is read from the store, so that a journal which tells too early has nothing to print.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HAS_STRACE } from '../../support/fault-tools.js';
import { temporaryFolder } from '../../support/program.js';
import {
  type Patch,
  type ProgramUnderTest,
  patchedProgram,
  WHOLE_PROGRAM,
} from '../../support/program-copy.js';
import { type SimulatorProcess, startSimulatorProcess } from '../../support/simulator-process.js';
import { cutPowerEverywhere } from './power-cut-cases.js';
import { resumeWithSalvage } from './salvage-cases.js';

interface Mutant {
  readonly patches: readonly Patch[];
  /** What the case that guards the promise has to say. */
  readonly complaints: (program: ProgramUnderTest) => Promise<readonly string[]>;
}

const SYNCS_SELDOM = 'that syncs its log only now and then (not after each commit)';
const SETTLEMENTS = 'store/sqlite/settlements.js';

let simulator: SimulatorProcess;
const folder = temporaryFolder();

beforeAll(async () => {
  simulator = await startSimulatorProcess({ latencyMs: { min: 1, max: 20 } });
});

afterAll(async () => {
  await simulator.stop();
  folder.remove();
});

const MUTANTS: Readonly<Record<string, Mutant>> = {
  [SYNCS_SELDOM]: {
    patches: [{ file: 'store/sqlite/connection.js', from: 'await this.#log.sync();', to: '' }],
    async complaints(program) {
      const report = await cutPowerEverywhere({ simulator, program, documents: 30, seed: 7 });
      const { cuts, cutsWithLoss, damages } = report;
      return [...damages, ...(cutsWithLoss > 0 ? [`${cutsWithLoss} of ${cuts} cuts lost answers`] : [])];
    },
  },
  'that does not ask whether the attempt is still its own (no token)': {
    patches: [
      {
        file: SETTLEMENTS,
        from: `WHERE id = ? AND attempt_token = ? AND state = 'in_progress'`,
        to: 'WHERE id = ? AND ? IS NOT NULL',
      },
    ],
    async complaints(program) {
      return (await resumeWithSalvage(simulator, program, 'too late')).violations;
    },
  },
};

async function expectFoundOut(name: string): Promise<void> {
  const mutant = MUTANTS[name];
  if (mutant === undefined) throw new Error(`no such mutant: ${name}`);
  expect(await mutant.complaints(WHOLE_PROGRAM)).toEqual([]);
  const program = patchedProgram(`${folder.path}/${Object.keys(MUTANTS).indexOf(name)}`, mutant.patches);
  const complaints = await mutant.complaints(program);
  console.info(`${name}: ${complaints.length} complaints, such as: ${complaints[0]}`);
  expect(complaints).not.toEqual([]);
}

describe('a program', () => {
  it.each(Object.keys(MUTANTS).filter((name) => name !== SYNCS_SELDOM))('%s, is found out', expectFoundOut);

  it.skipIf(!HAS_STRACE)('that syncs only now and then (needs strace), is found out', () =>
    expectFoundOut(SYNCS_SELDOM),
  );
});
