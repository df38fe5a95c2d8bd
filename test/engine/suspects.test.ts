/** Documents that may have brought the program down go one at a time, and say nothing of the run as a whole. */
import { afterEach, expect, it } from 'vitest';
import type { Provider, ProviderReply } from '../../src/provider/provider.js';
import { FakeClock } from '../support/fake-clock.js';
import { StoredRun } from '../support/stored-run.js';

const SUSPECTS = 3;
const DOCUMENTS = 40;

const clock = new FakeClock();
let stored: StoredRun;

afterEach(() => stored.remove());

/** A run whose first documents were in progress at two crashes. */
async function crashedTwice(): Promise<void> {
  const texts = Array.from({ length: DOCUMENTS }, (_, index) => `document ${index + 1}`);
  stored = await StoredRun.of(texts, { concurrency: 8 }, clock);
  const { store, run } = stored;
  const claim = { runId: run.id, workerId: 'dead', limit: SUSPECTS, leaseMs: 1_000, nowMs: clock.now() };
  for (let crash = 0; crash < 2; crash += 1) {
    await store.claimTasks(claim);
    await store.rescueTasks({ nowMs: clock.now(), whose: 'everyone', crashLimit: 3 });
  }
}

/** Answers after a second, and keeps how many calls were open beside each. */
function slowly(reply: ProviderReply): { provider: Provider; openAtStart: number[] } {
  let open = 0;
  const openAtStart: number[] = [];
  const provider: Provider = {
    async send() {
      open += 1;
      openAtStart.push(open);
      await clock.sleep(1_000);
      open -= 1;
      return reply;
    },
    probe: () => Promise.reject(new Error('nobody asks')),
    close: async () => undefined,
  };
  return { provider, openAtStart };
}

it('goes on with all at once when each has been alone', async () => {
  await crashedTwice();
  const { provider, openAtStart } = slowly({
    ok: true,
    output: 'fine',
    model: 'm',
    finishReason: 'stop',
    usage: null,
    costMicroUsd: null,
    httpStatus: 200,
    requestId: null,
    hints: {},
  });
  const { summary } = await stored.execute(provider, () => 0);
  expect(summary.counts).toMatchObject({ completed: DOCUMENTS });
  expect(openAtStart.slice(0, SUSPECTS + 1)).toEqual([1, 1, 1, 1]);
  expect(Math.max(...openAtStart)).toBe(8);
});

it('still stops when the first calls after them all fail in the same way', async () => {
  await crashedTwice();
  const { provider } = slowly({
    ok: false,
    failure: { kind: 'invalid_request', message: 'unknown parameter', httpStatus: 400 },
    usage: null,
    costMicroUsd: null,
    hints: {},
  });
  const { end, summary } = await stored.execute(provider, () => 0);
  expect(end.reason).toBe('halted');
  expect(summary.counts).toMatchObject({ failed: SUSPECTS, ready: DOCUMENTS - SUSPECTS });
});
