/** What the engine notices, in the words of `RunEvent`: the one place that knows both. */
import type { CalledTask, RunEvent } from '../core/event.js';
import { ENDPOINTS } from '../endpoints/endpoints.js';
import type { SentCall } from '../engine/call.js';
import type { DrainNotice, SettledTask } from '../engine/drain.js';
import type { PreparedTask } from '../engine/prepared-task.js';

/** @param runTraceparent in whose trace the run was handed in */
export function eventOf(notice: DrainNotice, runTraceparent: string | null): RunEvent {
  switch (notice.type) {
    case 'call_started':
      return startedEvent(notice.call, runTraceparent);
    case 'call_ended': {
      const { call, end } = notice;
      return { type: 'call_ended', lane: call.lane.name, tasks: tasksOf(call), ...end };
    }
    case 'failed':
      return { ...notice, type: 'call_failed' };
    case 'store_trouble':
      return { type: 'store_trouble', message: notice.error.message };
    default:
      return notice;
  }
}

function startedEvent(call: SentCall, runTraceparent: string | null): RunEvent {
  const { callId, lane, request, group } = call;
  const { model } = group[0] as PreparedTask;
  const { operation } = ENDPOINTS[request.endpoint];
  const tasks = tasksOf(call);
  return { type: 'call_started', lane: lane.name, callId, model, operation, tasks, runTraceparent };
}

function tasksOf({ group }: SentCall): readonly CalledTask[] {
  return group.map(({ task }) => task);
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
    timesToAnswerMs: settled.flatMap(({ task: { submittedAtMs }, outcome }) =>
      submittedAtMs !== undefined && 'atMs' in outcome ? [outcome.atMs - submittedAtMs] : [],
    ),
  };
}
