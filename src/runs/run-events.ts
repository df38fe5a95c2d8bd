/** What the engine notices, in the words of `RunEvent`: the one place that knows both. */
import type { Clock } from '../core/clock.js';
import type { RunEvent, TellEvent } from '../core/event.js';
import type { DrainNotice, SettledTask } from '../engine/drain.js';
import type { Lane } from '../engine/lane.js';
import type { Provider } from '../provider/provider.js';

export function eventOf(notice: DrainNotice): RunEvent {
  switch (notice.type) {
    case 'failed':
      return { ...notice, type: 'call_failed' };
    case 'store_trouble':
      return { type: 'store_trouble', message: notice.error.message };
    default:
      return notice;
  }
}

/** Of one commit. */
export function settledEvent(settled: readonly SettledTask[]): RunEvent & { readonly type: 'tasks_settled' } {
  const idsOf = (action: SettledTask['outcome']['action']): number[] =>
    settled.filter(({ outcome }) => outcome.action === action).map(({ task }) => task.taskId);
  return {
    type: 'tasks_settled',
    completed: idsOf('completed'),
    failed: idsOf('failed'),
    retried: idsOf('retry'),
  };
}

/** The same lane, which tells of each of its calls. */
export function tellingOfCalls(lane: Lane, tell: TellEvent, clock: Clock): Lane {
  const { name, provider } = lane;
  const send: Provider['send'] = async (request, options) => {
    const startedAtMs = clock.monotonicMs();
    tell({ type: 'call_started', lane: name });
    const reply = await provider.send(request, options);
    const kind = reply.ok ? null : 'aborted' in reply ? 'aborted' : reply.failure.kind;
    const latencyMs = clock.monotonicMs() - startedAtMs;
    tell({ type: 'call_ended', lane: name, kind, latencyMs, documents: request.parts });
    return reply;
  };
  const { redact } = provider;
  return {
    ...lane,
    provider: {
      send,
      probe: (options) => provider.probe(options),
      close: () => provider.close(),
      ...(redact === undefined ? {} : { redact }),
    },
  };
}
