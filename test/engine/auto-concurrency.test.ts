/** `--concurrency auto` over the whole engine, before a simulated server that slows down beyond 40 open calls. */
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../support/fake-clock.js';
import { judgedProvider } from '../support/judged-provider.js';
import { seededRandom } from '../support/seeded-random.js';
import { StoredRun } from '../support/stored-run.js';

const DOCUMENTS = 2_500;
const texts = Array.from({ length: DOCUMENTS }, (_, index) => `Document number ${index + 1}.`);

/** Answers per second of virtual time over the second half, when the controller has found its limit. */
async function answersPerSecond(concurrency: number | 'auto'): Promise<number> {
  const clock = new FakeClock();
  const server = judgedProvider(
    { latencyMs: { min: 150, max: 250 }, latencyClimb: { beyondOpenCalls: 40, msPerCall: 20 } },
    clock,
  );
  const run = await StoredRun.of(texts, { concurrency }, clock);
  try {
    const { summary } = await run.execute(server, seededRandom(3));
    expect(summary.counts).toMatchObject({ completed: DOCUMENTS, failed: 0 });
  } finally {
    await run.remove();
  }
  const times = server.arrivals.map(({ atMs }) => atMs).sort((one, other) => one - other);
  const half = times[DOCUMENTS / 2] ?? 0;
  return (DOCUMENTS / 2 / ((times.at(-1) ?? 0) - half)) * 1_000;
}

describe('concurrency that finds itself', () => {
  it('reaches nine tenths of the best fixed setting and beats one that is far off', async () => {
    const best = await answersPerSecond(40);
    const automatic = await answersPerSecond('auto');
    const farTooMany = await answersPerSecond(120);
    expect(automatic).toBeGreaterThanOrEqual(best * 0.9);
    expect(farTooMany).toBeLessThan(automatic);
  });
});
