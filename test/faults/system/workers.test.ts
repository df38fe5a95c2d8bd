/** Workers in processes of their own over one PostgreSQL; what becomes of them when they die is in test/slow. */
import { expect, it } from 'vitest';
import { startPostgres } from '../../support/postgres-server.js';
import { Fleet } from '../../support/worker-fleet.js';

it('keep eight processes within every window of one limit', async () => {
  const server = await startPostgres();
  const fleet = await Fleet.of({
    ...{ storeUrl: server.url, documents: 400, concurrency: 8, leaseMs: 10_000 },
    ...{ requestsPerWindow: 100, windowMs: 4_000, latencyMs: { min: 20, max: 200 } },
  });
  try {
    for (let number = 0; number < 8; number += 1) fleet.start(1_000);
    const ends = await Promise.all(fleet.workers.map(({ ended }) => ended));
    expect(ends).toEqual(Array(8).fill(0));
    expect(await fleet.completed()).toBe(400);
    const { violations, timeline, repeatedCalls } = await fleet.simulator.books();
    const seconds = timeline.filter(({ accepted }) => accepted > 0).length;
    console.log(`400 calls in ${seconds} seconds, of 100 in any 4`);
    expect({ overLimit: violations.overLimit, repeatedCalls }).toEqual({ overLimit: 0, repeatedCalls: 0 });
  } finally {
    await fleet.remove();
    await server.remove();
  }
});
