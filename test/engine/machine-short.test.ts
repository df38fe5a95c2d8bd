/** A machine that can open no connection harms no document: there are fewer calls at once, and it is told. */

import { afterEach, expect, it } from 'vitest';
import type { RunEvent } from '../../src/core/event.js';
import type { ProviderFailure } from '../../src/core/failure.js';
import type { Provider, ProviderReply } from '../../src/provider/provider.js';
import { answered, answerOf } from '../support/answered.js';
import { FakeClock } from '../support/fake-clock.js';
import { StoredRun } from '../support/stored-run.js';

const DOCUMENTS = 200;

const clock = new FakeClock();
let stored: StoredRun;

afterEach(() => stored.remove());

const ANSWER: ProviderReply = answerOf([answered('fine')]);

/** Answers after a second; no call leaves while `reason` gives one. */
function onMachine(reason: (openCalls: number) => Partial<ProviderFailure> | null) {
  let open = 0;
  const openAtStart: number[] = [];
  const provider: Provider = {
    async send() {
      const short = reason(open);
      if (short !== null) {
        await clock.sleep(1);
        const failure = { kind: 'network', message: 'no way out', isUnsent: true, ...short } as const;
        return { ok: false, failure, usage: null, costMicroUsd: null, hints: {} };
      }
      open += 1;
      openAtStart.push(open);
      await clock.sleep(1_000);
      open -= 1;
      return ANSWER;
    },
    probe: () => Promise.reject(new Error('nobody asks')),
    close: async () => undefined,
  };
  return { provider, openAtStart };
}

async function drain(provider: Provider) {
  const texts = Array.from({ length: DOCUMENTS }, (_, index) => `document ${index + 1}`);
  stored = await StoredRun.of(texts, { concurrency: 50, maxAttempts: 1 }, clock);
  const notices: RunEvent[] = [];
  const report = await stored.execute(
    provider,
    () => 0,
    () => undefined,
    { tell: (event) => event.type === 'machine_short' && notices.push(event) },
  );
  return { ...report, notices };
}

it('that has room for 20 connections answers all with fewer calls at once, and uses no attempt for it', async () => {
  const { provider } = onMachine((open) => (open >= 20 ? { code: 'EMFILE', shortOf: 'connections' } : null));
  const { summary, end, notices } = await drain(provider);
  expect(end).toEqual({ reason: 'drained' });
  expect(summary.counts).toMatchObject({ completed: DOCUMENTS, failed: 0 });
  expect(notices[0]).toMatchObject({ type: 'machine_short', failure: { code: 'EMFILE' } });
  // It learns: were there 50 calls to the end, most of them would fail again and again.
  expect(summary.calls.failed).toBeLessThan(DOCUMENTS);
});

it('whose network is down for ten minutes goes on afterwards with as many calls as before', async () => {
  const backAtMs = clock.monotonicMs() + 600_000;
  const { provider, openAtStart } = onMachine(() =>
    clock.monotonicMs() < backAtMs ? { code: 'ENETUNREACH', shortOf: 'network' } : null,
  );
  const { summary } = await drain(provider);
  expect(summary.counts).toMatchObject({ completed: DOCUMENTS, failed: 0 });
  expect(Math.max(...openAtStart)).toBe(50);
});
