/** Answers in a salvage file are taken up by the next life, unless they come too late. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WHOLE_PROGRAM } from '../../support/program-copy.js';
import { type SimulatorProcess, startSimulatorProcess } from '../../support/simulator-process.js';
import { resumeWithSalvage } from './salvage-cases.js';

let simulator: SimulatorProcess;

beforeAll(async () => {
  simulator = await startSimulatorProcess({ latencyMs: 20 });
});

afterAll(() => simulator.stop());

describe('answers that could not be stored', () => {
  it('are stored by the next life, and not asked for again', async () => {
    const report = await resumeWithSalvage(simulator, WHOLE_PROGRAM, 'in time');
    expect(report).toMatchObject({ applied: report.salvaged, fileIsLeft: false });
    // The test made these answers up, which is all that may be found wrong with them.
    const madeUp = /could not be stored|that nobody was asked for/;
    expect(report.violations.filter((found) => !madeUp.test(found))).toEqual([]);
    // A call that was written down may not have left before the kill.
    expect(report.calls).toBeLessThanOrEqual(16);
  });

  it('and come when their documents have other answers, change nothing', async () => {
    const report = await resumeWithSalvage(simulator, WHOLE_PROGRAM, 'too late');
    expect(report).toMatchObject({ applied: 0, fileIsLeft: false, violations: [] });
    expect(report.calls).toBeGreaterThanOrEqual(16);
  });
});
