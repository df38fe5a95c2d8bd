/** What many workers over one PostgreSQL have to stand, at any size. */
import { expect } from 'vitest';
import { startPostgres } from './postgres-server.js';
import { waitFor } from './wait-for.js';
import { Fleet, type FleetOptions } from './worker-fleet.js';

export interface FleetCase extends Omit<FleetOptions, 'storeUrl'> {
  /** For how long one of the workers is stopped: beyond its lease. */
  readonly stoppedMs: number;
  readonly withinMs: number;
}

/** One is killed, one is stopped for longer than its lease, and the database is killed and comes back. */
export async function fourWorkersStand(options: FleetCase): Promise<void> {
  const server = await startPostgres({ durable: true });
  const fleet = await Fleet.of({ ...options, storeUrl: server.url });
  try {
    const { documents, concurrency, stoppedMs, withinMs } = options;
    const reached = (share: number) =>
      waitFor(
        `${share} of the answers`,
        async () => {
          expect(fleet.crashes, 'exit codes').toEqual([]);
          return (await fleet.completed()) >= documents * share;
        },
        withinMs,
      );
    const startedAtMs = performance.now();
    const secondsSoFar = (): number => Math.round((performance.now() - startedAtMs) / 1_000);
    const moments: string[] = [];
    const note = (what: string): void => void moments.push(`${what} at ${secondsSoFar()} s`);
    const start = () => fleet.start(3 * options.leaseMs);
    const [killed, stopped] = [start(), start(), start(), start()];
    await reached(0.1);
    killed.kill('SIGKILL');
    note('killed');
    await reached(0.25);
    // In the middle of a call, so that its answer comes too late.
    await waitFor('the worker that is stopped to have a call open', async () => {
      stopped.kill('SIGSTOP');
      if (await fleet.isCalling(stopped)) return true;
      stopped.kill('SIGCONT');
      return false;
    });
    note('stopped');
    const wokenAtMs = performance.now() + stoppedMs;
    await reached(0.4);
    await server.kill();
    note('database killed');
    await server.start();
    await waitFor(
      'the end of the stop, and its documents to be taken over',
      async () => performance.now() >= wokenAtMs && (await fleet.openLinesOf(stopped)).length === 0,
      withinMs,
    );
    expect((await fleet.simulator.books()).violations.overLimit).toBe(0);
    stopped.kill('SIGCONT');
    note('woken');
    await reached(1);
    const ends = await Promise.all(fleet.workers.map(({ ended }) => ended));
    expect(ends.filter((code) => code !== 0)).toEqual([null]);

    const { counts, calls } = await fleet.store.summarizeRun(fleet.runId);
    expect(counts).toMatchObject({ completed: documents, failed: 0, ready: 0, in_progress: 0 });
    expect(await fleet.wrongAnswers()).toEqual([]);
    expect((await fleet.store.listRuns())[0]?.status).toBe('finished');
    const { repeatedCalls, violations, refusedByStatus, peak, timeline } = await fleet.simulator.books();
    const refusedAt = timeline.filter(({ refused }) => refused > 0).map(({ second }) => second);
    const open = fleet.eventsOf('rescued').map(({ lostCalls }) => lostCalls);
    console.log(
      `${documents} documents in ${secondsSoFar()} s (${moments.join(', ')}); calls open at each rescue: ${open}, ${repeatedCalls} repeated; ` +
        `refused to the stopped worker: ${stopped.refused()} documents, ${calls.late} of them answered; ` +
        `refused by the server: ${JSON.stringify(refusedByStatus)} at ${refusedAt} s; peak ${JSON.stringify(peak)}`,
    );
    // A call that was stopped between its limiter and the network arrives when its place in the window is another's.
    expect(violations.overLimit).toBeLessThanOrEqual(concurrency);
    // Those of the worker that died, and of the one that was away: open, or answered and not yet committed.
    expect(repeatedCalls, 'those that were open').toBeLessThanOrEqual(calls.repeated);
    expect(calls.repeated).toBeLessThanOrEqual(2 * 2 * concurrency);
    expect(calls.late, 'late answers that are counted').toBeGreaterThan(0);
    expect(stopped.refused(), 'what the stopped worker is told').toBeGreaterThanOrEqual(calls.late);
    expect(await fleet.answersByCall()).toEqual({ ofCalls: documents, ofLostCalls: 0 });
  } finally {
    await fleet.remove();
    await server.remove();
  }
}
