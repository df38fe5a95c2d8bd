/** What the engine notices, in the words of `RunEvent`: the one place that knows both. */
import type { Clock } from '../core/clock.js';
import type { RunEvent, TellEvent } from '../core/event.js';
import type { FailureKind } from '../core/failure.js';
import type { DrainNotice, SettledTask } from '../engine/drain.js';
import type { Lane } from '../engine/lane.js';
import type { Provider, ProviderReply } from '../provider/provider.js';
import type { RemoteResponses } from '../provider/remote-responses.js';

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
    const kind = endOf(reply);
    const latencyMs = clock.monotonicMs() - startedAtMs;
    tell({ type: 'call_ended', lane: name, kind, latencyMs, documents: request.parts });
    return reply;
  };
  const { redact } = provider;
  return {
    ...lane,
    ...(lane.responses && { responses: tellingOfResponses(name, lane.responses, tell, clock) }),
    provider: {
      send,
      probe: (options) => provider.probe(options),
      close: () => provider.close(),
      ...(redact === undefined ? {} : { redact }),
    },
  };
}

/** A call in the background lasts from its creation, or from the first look of this process, until its answer is there. */
function tellingOfResponses(
  lane: string,
  responses: RemoteResponses,
  tell: TellEvent,
  clock: Clock,
): RemoteResponses {
  const openSinceMs = new Map<string, number>();
  const ended = (reply: ProviderReply, startedAtMs: number): void =>
    tell({
      ...{ type: 'call_ended', lane, kind: endOf(reply), documents: 1 },
      latencyMs: clock.monotonicMs() - startedAtMs,
    });
  const looked =
    (look: RemoteResponses['retrieve']): RemoteResponses['retrieve'] =>
    async (id, request, options) => {
      const startedAtMs = openSinceMs.get(id) ?? clock.monotonicMs();
      if (!openSinceMs.has(id)) tell({ type: 'call_started', lane });
      openSinceMs.set(id, startedAtMs);
      const reply = await look(id, request, options);
      if (reply.ok && !('isOpen' in reply.value)) {
        openSinceMs.delete(id);
        ended(reply.value, startedAtMs);
      }
      return reply;
    };
  return {
    async create(request, options) {
      const startedAtMs = clock.monotonicMs();
      tell({ type: 'call_started', lane });
      const reply = await responses.create(request, options);
      if ('isOpen' in reply) openSinceMs.set(reply.id, startedAtMs);
      else ended(reply, startedAtMs);
      return reply;
    },
    retrieve: looked((...look) => responses.retrieve(...look)),
    cancel: (id, request, options) => responses.cancel(id, request, options),
    remove: (id, options) => responses.remove(id, options),
  };
}

function endOf(reply: ProviderReply): FailureKind | 'aborted' | null {
  return reply.ok ? null : 'aborted' in reply ? 'aborted' : reply.failure.kind;
}
