/** Events of a call for one document or several, as an engine tells them. */
import type { CallEnd } from '../../src/core/call.js';
import type { CalledTask, RunEvent } from '../../src/core/event.js';

const ONE: readonly CalledTask[] = [{ taskId: 7, line: 3, key: 'doc-3' }];

export function callStarted(callId: number, tasks = ONE): RunEvent & { readonly type: 'call_started' } {
  const of = { lane: 'a', model: 'small-model', operation: 'chat', runTraceparent: null };
  return { type: 'call_started', callId, tasks, ...of };
}

/** A good answer, but for what `end` says. */
export function callEnded(
  callId: number,
  end: Partial<CallEnd> = {},
): RunEvent & { readonly type: 'call_ended' } {
  const usage = { inputTokens: 10, outputTokens: 5, cachedTokens: 0, reasoningTokens: 0 };
  const good = { httpStatus: 200, kind: null, usage, costMicroUsd: 1_500, requestId: 'req-1', message: null };
  return {
    type: 'call_ended',
    ...{ lane: 'a', tasks: ONE, callId, finishedAtMs: 1_000, latencyMs: 400 },
    ...good,
    ...end,
  };
}
