/**
 * SIGKILL at places rather than at times: at system calls, where a file is half written, and at points between an
 * answer and its commit, which a clock would seldom hit.
 */
import pLimit from 'p-limit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HAS_STRACE } from '../../support/fault-tools.js';
import { type SimulatorProcess, startSimulatorProcess } from '../../support/simulator-process.js';
import type { SystemCall } from '../../support/strace.js';
import {
  countSystemCalls,
  type KillReport,
  killAtPoint,
  killAtPoints,
  killAtSystemCall,
  killWhileNaming,
  spread,
} from './kill-cases.js';

let simulator: SimulatorProcess;

beforeAll(async () => {
  simulator = await startSimulatorProcess({ latencyMs: 5 });
});

afterAll(() => simulator.stop());

/** Two lives at a time: most of each is a process that starts, and each has a folder and documents of its own. */
async function killAtEach(
  places: readonly number[],
  what: string,
  kill: (nth: number) => Promise<KillReport>,
): Promise<ReadonlyMap<string, KillReport>> {
  const twoAtOnce = pLimit(2);
  const reports = await Promise.all(places.map((nth) => twoAtOnce(kill, nth)));
  return new Map(reports.map((report, index) => [`${what} ${places[index]}`, report]));
}

/** @param leastFired where the number of calls varies with how answers come together, a kill may find the end */
function expectKills(reports: ReadonlyMap<string, KillReport>, leastFired = reports.size): void {
  const broken = [...reports].filter(([, { violations }]) => violations.length > 0);
  expect(Object.fromEntries(broken.map(([place, { violations }]) => [place, violations]))).toEqual({});
  const fired = [...reports.values()].filter((report) => report.fired);
  expect(fired.length).toBeGreaterThanOrEqual(leastFired);
  const printed = fired.map((report) => report.printed);
  const repeated = fired.reduce((sum, report) => sum + report.repeated, 0);
  console.info(
    `${fired.length} of ${reports.size} kills fired after ${Math.min(...printed)} to ${Math.max(...printed)} answers; ${repeated} calls were repeated`,
  );
}

describe.skipIf(!HAS_STRACE)('killed at a system call (needs strace)', () => {
  async function sweep(call: SystemCall): Promise<void> {
    const places = spread(await countSystemCalls(simulator, call), 11);
    const reports = await killAtEach(places, call, (nth) => killAtSystemCall(simulator, call, nth));
    expectKills(reports, 8);
    const printed = [...reports.values()].map((report) => report.printed);
    expect(Math.max(...printed), 'some kill must come after answers').toBeGreaterThan(0);
  }

  it('at the n-th pwrite64, for n from the first to the last, loses nothing', () => sweep('pwrite64'));

  it('at the n-th fsync, for n from the first to the last, loses nothing', () => sweep('fsync'));

  it('at the n-th fcntl (a lock), for n from the first to the last, loses nothing', () => sweep('fcntl'));

  it.each(['link', 'rename'] as const)(
    'at the %s that names the results file, leaves it whole or absent',
    async (call) => {
      const { found, whole, leftovers, violations } = await killWhileNaming(simulator, call);
      expect(found).toBe(call === 'rename' ? whole : null);
      expect(leftovers).toEqual([]);
      expect(violations).toEqual([]);
    },
  );
});

describe('killed at a named point', () => {
  it.each([
    'after an import page',
    'after a claim',
    'after a call start',
    'after a reply',
    'before a commit',
    'after a commit',
    'before the end',
  ])('%s, loses nothing', async (point) => {
    const isOnce = ['after an import page', 'before the end'].includes(point);
    const kill = (nth: number): Promise<KillReport> => killAtPoint(simulator, point, nth);
    expectKills(await killAtEach(isOnce ? [1] : [1, 2, 4], point, kill));
  });

  it('again and again, in each life somewhere else, loses nothing', async () => {
    const points = ['after a reply', 'after a rescue', 'before a commit', 'after a claim', 'after a commit'];
    const report = await killAtPoints(simulator, [...points, ...points]);
    expect(report.violations).toEqual([]);
    expect(report.printed).toBeGreaterThan(0);
  });
});
