/** An answer whose check throws is the answer's fault: paid for, told in clean words, and no end of the run. */

import { expect, it } from 'vitest';
import type { BackgroundCalls } from '../../src/engine/background-calls.js';
import type { CallContext } from '../../src/engine/call.js';
import type { Journal } from '../../src/engine/journal.js';
import { Gate, type Lane } from '../../src/engine/lane.js';
import { OpenCalls } from '../../src/engine/open-calls.js';
import type { CheckOutput, PreparedTask } from '../../src/engine/prepared-task.js';
import { createLimiter } from '../../src/limiter/limiter.js';
import type { Provider } from '../../src/provider/provider.js';
import { answered, answerOf } from '../support/answered.js';
import { FakeClock } from '../support/fake-clock.js';
import { performCall } from '../support/perform-call.js';

const USAGE = { inputTokens: 10, outputTokens: 5, cachedTokens: 0, reasoningTokens: 0 };

function performWith(checkOutput: CheckOutput) {
  const clock = new FakeClock();
  const provider: Provider = {
    send: async () => answerOf([answered('an answer')], { usage: USAGE, costMicroUsd: 7, requestId: 'req' }),
    probe: () => Promise.reject(new Error('nobody asks')),
    async close() {},
    redact: (text) => text.replaceAll('the key', '[redacted]'),
  };
  const limiter = createLimiter({ requestsPerMinute: null, tokensPerMinute: null, random: () => 0.5 });
  const lane: Lane = { name: 'lane', weight: 1, provider, limiter, costOf: () => null, mostOf: () => null };
  const context: CallContext = {
    runId: 1,
    join: () => ({ endpoint: 'chat', bodyJson: '{}', parts: 1 }),
    clock,
    throttledSinceMs: () => null,
    random: () => 0,
    retry: { maxAttempts: 1, maxWaitMs: 1_000 },
    timeoutMs: 1_000,
    gate: new Gate([lane], clock, false),
    journal: { start: async () => 7 } as unknown as Journal,
    openCalls: new OpenCalls(),
    mayBeDown: () => true,
    background: { task: 'collect' } as BackgroundCalls,
    onAccepted: () => undefined,
    budget: null,
    onExhausted: () => undefined,
    onSent: () => undefined,
    onEnded: () => undefined,
  };
  const task = { taskId: 1, line: 1, key: 'a', body: '{}', attempts: 0, crashCount: 0 };
  const prepared: PreparedTask = {
    task: { ...task, throttledForMs: null, attemptToken: 'token' },
    grouping: null,
    request: { endpoint: 'chat', bodyJson: '{}', attachments: [] },
    model: 'm',
    cost: () => ({ requests: 1, tokens: 1 }),
    billing: { model: 'm', mostInputTokens: 1, outputCap: null, serviceTier: null },
    checkOutput,
    learn: () => undefined,
  };
  return performCall([prepared], context);
}

it.each<[string, CheckOutput, string]>([
  [
    'throws',
    () => Promise.reject(new RangeError('of the key')),
    'The answer could not be checked: RangeError: of [redacted]',
  ],
  [
    'quotes it',
    async () => ({ problem: `it has /\u001b[31mthe key\n${'x'.repeat(1_000)}` }),
    'it has / [31m[redacted] xxx',
  ],
])(
  'a check that %s makes bad output of the answer, and what it cost is kept',
  async (_what, check, message) => {
    const [outcome] = (await performWith(check)).settlement.outcomes;
    expect(outcome).toMatchObject({
      action: 'failed',
      error: { kind: 'bad_output', message: expect.stringContaining(message), requestId: 'req' },
      share: { usage: USAGE, costMicroUsd: 7 },
    });
    if (outcome?.action === 'failed') expect(outcome.error.message.length).toBeLessThanOrEqual(500);
  },
);
