/** Workers that die, are stopped and lose their database: with short leases, and at full size. */
import { it } from 'vitest';
import { fourWorkersStand } from '../support/fleet-cases.js';

it('four workers lose nothing of 20,000 documents when one dies, one is stopped for 40 s and the database is killed', async () => {
  await fourWorkersStand({
    ...{ documents: 20_000, concurrency: 16, leaseMs: 30_000, stoppedMs: 40_000, withinMs: 420_000 },
    ...{ requestsPerWindow: 6_000, windowMs: 60_000, latencyMs: { min: 50, max: 400 } },
  });
});

it('four workers lose nothing of 400 documents, repeat only what was open, and stay within the limit when one dies, one is stopped and the database is killed', async () => {
  await fourWorkersStand({
    ...{ documents: 400, concurrency: 4, leaseMs: 2_000, stoppedMs: 5_000, withinMs: 180_000 },
    ...{ requestsPerWindow: 80, windowMs: 4_000, latencyMs: { min: 50, max: 200 } },
  });
});
