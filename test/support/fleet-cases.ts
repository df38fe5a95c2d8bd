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
    const [killed, stopped] = Array.from({ length: 4 }, () => fleet.start(3 * options.leaseMs));
    await reached(0.1);
    killed?.kill('SIGKILL');
    await reached(0.25);
    stopped?.kill('SIGSTOP');
    const wokenAtMs = performance.now() + stoppedMs;
    await reached(0.4);
    await server.kill();
    await server.start();
    await waitFor('the end of the stop', () => performance.now() >= wokenAtMs, withinMs);
    stopped?.kill('SIGCONT');
    await reached(1);
    const ends = await Promise.all(fleet.workers.map(({ ended }) => ended));
    expect(ends.filter((code) => code !== 0)).toEqual([null]);

    const { counts } = await fleet.store.summarizeRun(fleet.runId);
    expect(counts).toMatchObject({ completed: documents, failed: 0, ready: 0, in_progress: 0 });
    expect(await fleet.wrongAnswers()).toEqual([]);
    expect((await fleet.store.listRuns())[0]?.status).toBe('finished');
    const { repeatedCalls, violations, refusedByStatus, peak } = await fleet.simulator.books();
    console.log(
      `${repeatedCalls} calls repeated; refused ${JSON.stringify(refusedByStatus)}; peak ${JSON.stringify(peak)}; leases lost ${JSON.stringify(fleet.eventsOf('leases_lost'))}`,
    );
    expect(violations.overLimit).toBe(0);
    // Those of the worker that died, and of the one that was away.
    expect(repeatedCalls).toBeLessThanOrEqual(2 * concurrency);
  } finally {
    await fleet.remove();
    await server.remove();
  }
}
