/** A request that is loaded when its call is about to leave: not before it is admitted, and not paid for when it fails. */
import { describe, expect, it } from 'vitest';
import type { TaskError } from '../../src/core/outcome.js';
import type { LeasedTask } from '../../src/core/task.js';
import type { BackgroundCalls } from '../../src/engine/background-calls.js';
import type { CallContext } from '../../src/engine/call.js';
import type { Journal } from '../../src/engine/journal.js';
import { Gate, type Lane } from '../../src/engine/lane.js';
import { OpenCalls } from '../../src/engine/open-calls.js';
import type { JoinRequests, LoadRequest, PreparedTask } from '../../src/engine/prepared-task.js';
import { createLimiter, type Limiter } from '../../src/limiter/limiter.js';
import type { Provider } from '../../src/provider/provider.js';
import { FakeClock } from '../support/fake-clock.js';
import { performCall } from '../support/perform-call.js';

const TASK: LeasedTask = {
  taskId: 1,
  line: 1,
  key: 'a',
  body: '{}',
  attempts: 0,
  crashCount: 0,
  throttledForMs: null,
  attemptToken: 'token',
};

const GONE: TaskError = {
  kind: 'invalid_request',
  message: 'the image field photo names /x.png, which does not exist',
  httpStatus: null,
  code: null,
  requestId: null,
  partialOutputJson: null,
};

interface Stage {
  readonly limiter: Limiter;
  readonly gate: Gate;
  /** What happened, in its order. */
  readonly events: string[];
  perform(request: ReturnType<JoinRequests>, callId?: number | null): ReturnType<typeof performCall>;
}

/** One lane that lets one call a minute through. */
function stage(): Stage {
  const clock = new FakeClock();
  const events: string[] = [];
  const limiter = createLimiter({ requestsPerMinute: 1, tokensPerMinute: null, random: () => 0.5 });
  const provider: Provider = {
    async send({ bodyJson }) {
      events.push(`sent ${bodyJson}`);
      return { ok: false, aborted: true };
    },
    probe: () => Promise.reject(new Error('nobody asks')),
    async close() {},
  };
  const lane: Lane = { name: 'lane', weight: 1, provider, limiter, costOf: () => null, mostOf: () => null };
  const gate = new Gate([lane], clock, false);
  return {
    limiter,
    gate,
    events,
    perform(request, callId = 7) {
      const journal = {
        async start() {
          events.push('recorded');
          return callId;
        },
      };
      const prepared: PreparedTask = {
        task: TASK,
        grouping: null,
        request: { endpoint: 'chat', bodyJson: '{}', attachments: [] },
        model: 'm',
        cost: () => ({ requests: 1, tokens: 1 }),
        billing: { model: 'm', mostInputTokens: 1, outputCap: null, serviceTier: null },
        checkOutput: null,
        learn: () => undefined,
      };
      const context: CallContext = {
        runId: 1,
        join: () => request,
        clock,
        throttledSinceMs: () => null,
        random: () => 0,
        retry: { maxAttempts: 5, maxWaitMs: 1_000 },
        timeoutMs: 1_000,
        gate,
        journal: journal as unknown as Journal,
        openCalls: new OpenCalls(),
        mayBeDown: () => true,
        background: { task: 'collect' } as BackgroundCalls,
        onAccepted: () => undefined,
        budget: null,
        onExhausted: () => undefined,
        onSent: () => undefined,
        onEnded: () => undefined,
      };
      return performCall([prepared], context);
    },
  };
}

function loading(events: string[], body: string): LoadRequest {
  return async () => {
    events.push(`loaded ${body}`);
    return { endpoint: 'chat', bodyJson: body, parts: 1 };
  };
}

describe('a request that is loaded', () => {
  it('is so after its call was admitted, before it is recorded and sent', async () => {
    const { events, perform } = stage();
    await perform(loading(events, 'one'));
    expect(events).toEqual(['loaded one', 'recorded', 'sent one']);
  });

  it('is not while its call waits for its turn, nor when it is sent back from there', async () => {
    const { events, perform, gate } = stage();
    await perform(loading(events, 'one'));
    events.length = 0;
    const waiting = perform(loading(events, 'two'));
    expect(gate.waiting).toBe(1);
    expect(events).toEqual([]);
    gate.close();
    expect((await waiting).settlement.outcomes[0]?.action).toBe('released');
    expect(events).toEqual([]);
  });

  it('and cannot be fails the task without a call, and gives its turn to the next', async () => {
    const { events, perform, gate } = stage();
    let refuse = (): void => undefined;
    const refused = perform(
      () =>
        new Promise((resolve) => {
          refuse = () => resolve({ refused: GONE });
        }),
    );
    const next = perform(loading(events, 'next'));
    expect(gate.waiting).toBe(1);
    await Promise.resolve();
    refuse();
    expect((await refused).settlement.outcomes[0]).toMatchObject({
      action: 'failed',
      share: null,
      error: GONE,
    });
    await next;
    expect(events).toEqual(['loaded next', 'recorded', 'sent next']);
  });

  it('gives its turn back where the ledger cannot take the call', async () => {
    const { events, perform } = stage();
    expect((await perform(loading(events, 'one'), null)).settlement.outcomes[0]?.action).toBe('released');
    await perform(loading(events, 'two'));
    expect(events).toEqual(['loaded one', 'recorded', 'loaded two', 'recorded', 'sent two']);
  });
});
