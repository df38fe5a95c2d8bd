/** The direct way of a run: calls, whose answers come with them or are made in the background. */
import type { RunRecord } from '../core/run.js';
import { Drain, type DrainOptions } from '../engine/drain.js';
import { createJoinRequests } from './prepare-task.js';
import { settingsOfRun } from './run-settings.js';

type OfRun = Omit<
  DrainOptions,
  | 'runId'
  | 'join'
  | 'grouping'
  | 'concurrency'
  | 'retry'
  | 'timeoutMs'
  | 'graceMs'
  | 'isGuarded'
  | 'background'
> & {
  /** `cancel`: nothing is sent, and background responses are cancelled, whose answers are taken all the same. */
  readonly task: 'send' | 'cancel';
};

export function directWayOf(run: RunRecord, { task, ...options }: OfRun): Drain {
  const { pacing, remote } = settingsOfRun(run);
  return new Drain({
    ...options,
    runId: run.id,
    join: createJoinRequests(pacing.groupUrl),
    grouping: {
      fewest: pacing.groupMin,
      most: pacing.groupMax,
      targetLatencyMs: pacing.targetLatencyMs,
      waitMs: pacing.groupWaitMs,
    },
    concurrency: pacing.concurrency,
    retry: pacing,
    timeoutMs: pacing.timeoutMs,
    graceMs: pacing.graceMs,
    isGuarded: pacing.guard,
    background: {
      task: task === 'send' && !remote.background ? 'collect' : task,
      pollIntervalMs: remote.pollIntervalMs,
      keepRemote: remote.keepRemote,
    },
  });
}
