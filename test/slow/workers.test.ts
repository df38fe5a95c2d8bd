/** The same as in test/faults/system at full size: 20,000 documents, leases of 30 s, windows of a minute. */
import { it } from 'vitest';
import { fourWorkersStand } from '../support/fleet-cases.js';

it('four workers lose nothing of 20,000 documents when one dies, one is stopped for 40 s and the database is killed', async () => {
  await fourWorkersStand({
    ...{ documents: 20_000, concurrency: 16, leaseMs: 30_000, stoppedMs: 40_000, withinMs: 420_000 },
    ...{ requestsPerWindow: 6_000, windowMs: 60_000, latencyMs: { min: 50, max: 400 } },
  });
});
