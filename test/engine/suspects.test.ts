/** Documents that may have brought the program down go last and one at a time, and say nothing of the run as a whole. */

import { afterEach, expect, it } from 'vitest';
import type { RunEvent } from '../../src/core/event.js';
import type { SendingWay } from '../../src/engine/sending-way.js';
import type { Provider, ProviderReply } from '../../src/provider/provider.js';
import { callStart } from '../contract/store/builders.js';
import { answered, answerOf } from '../support/answered.js';
import { FakeClock } from '../support/fake-clock.js';
import { StoredRun } from '../support/stored-run.js';

const SUSPECTS = 3;
const DOCUMENTS = 40;

const clock = new FakeClock();
let stored: StoredRun;
let running: SendingWay | null = null;

afterEach(() => stored.remove());

/** A run at whose two crashes calls for its first documents were open. */
async function crashedTwice(documents = DOCUMENTS): Promise<void> {
  const texts = Array.from({ length: documents }, (_, index) => `document ${index + 1}`);
  stored = await StoredRun.of(texts, { concurrency: 8 }, clock);
  const { store, run } = stored;
  const claim = { runId: run.id, workerId: 'dead', limit: SUSPECTS, leaseMs: 1_000 };
  for (let crash = 0; crash < 2; crash += 1) {
    const open = await store.claimTasks(claim);
    const calls = open.map((task) => callStart(run.id, task, { startedAtMs: clock.now() }));
    await store.record(calls, []);
    await store.rescueTasks({ workers: ['dead'], crashLimit: 3 });
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

const REFUSED: ProviderReply = {
  ok: false,
  failure: { kind: 'invalid_request', message: 'unknown parameter', httpStatus: 400 },
  usage: null,
  costMicroUsd: null,
  hints: {},
};

it('come when all others are done, each alone, and are told of once, with how many are left', async () => {
  await crashedTwice();
  const { provider, openAtStart } = slowly(answerOf([answered('fine')]));
  const notices: RunEvent[] = [];
  const left = new Set<number>();
  const { summary } = await stored.execute(
    {
      ...provider,
      send(request, options) {
        left.add(running?.snapshot().suspectsLeft ?? 0);
        return provider.send(request, options);
      },
    },
    () => 0,
    (drain) => {
      running = drain;
    },
    { tell: (event) => event.type === 'suspects' && notices.push(event) },
  );
  expect(summary.counts).toMatchObject({ completed: DOCUMENTS });
  expect(openAtStart.slice(-SUSPECTS)).toEqual([1, 1, 1]);
  expect(Math.max(...openAtStart)).toBe(8);
  expect(notices).toEqual([{ type: 'suspects', left: SUSPECTS }]);
  expect([...left]).toEqual([0, 3, 2, 1]);
});

it('keep nothing from stopping a run whose first calls all fail in the same way', async () => {
  await crashedTwice();
  const { end, summary } = await stored.execute(slowly(REFUSED).provider, () => 0);
  expect(end.reason).toBe('halted');
  expect(summary.counts).toMatchObject({ failed: 0, ready: DOCUMENTS });
});

it('fail for themselves where they are all that is left, since each has to be settled before the next', async () => {
  await crashedTwice(SUSPECTS);
  const { end, summary } = await stored.execute(slowly(REFUSED).provider, () => 0);
  expect(end.reason).toBe('drained');
  expect(summary.counts).toMatchObject({ failed: SUSPECTS });
});
