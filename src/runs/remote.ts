/** The remote way of a run: batches that a provider works on. */
import type { BatchRecord } from '../core/batch-record.js';
import { EXIT_CODES, LlmBatchError } from '../core/errors.js';
import type { RunRecord } from '../core/run.js';
import type { BatchingLane, Lane } from '../engine/lane.js';
import { RemoteWay, type RemoteWayOptions } from '../engine/remote/remote-way.js';
import type { Store } from '../store/store.js';
import { createJoinRequests } from './prepare-task.js';
import { settingsOfRun } from './run-settings.js';

/**
 * What of a run is with providers: batches that are begun and not settled, and background responses.
 * @param wanted absent: both
 */
export async function openBatches(
  store: Store,
  run: RunRecord,
  wanted?: BatchRecord['kind'],
): Promise<readonly BatchRecord[]> {
  const all = await store.remote.list(run.id);
  return all.filter(({ state, kind }) => state !== 'settled' && (wanted ?? kind) === kind);
}

type OfRun = Omit<
  RemoteWayOptions,
  | 'runId'
  | 'runName'
  | 'lanes'
  | 'join'
  | 'retry'
  | 'timeoutMs'
  | 'graceMs'
  | 'most'
  | 'pollIntervalMs'
  | 'finishDirectByMs'
  | 'keepRemote'
>;

/** @throws LlmBatchError REMOTE_UNAVAILABLE (exit 2) where no lane takes batches */
export function remoteWayOf(run: RunRecord, lanes: readonly Lane[], options: OfRun): RemoteWay {
  const { pacing, remote } = settingsOfRun(run);
  const batching = lanes.filter((lane): lane is BatchingLane => lane.remote !== undefined);
  if (batching.length === 0) {
    throw new LlmBatchError('None of the servers of this run takes batches.', {
      code: 'REMOTE_UNAVAILABLE',
      exitCode: EXIT_CODES.usage,
    });
  }
  return new RemoteWay({
    ...options,
    runId: run.id,
    runName: run.name,
    lanes: batching,
    join: createJoinRequests(null),
    retry: pacing,
    timeoutMs: pacing.timeoutMs,
    graceMs: pacing.graceMs,
    most: remote.remoteMax,
    keepRemote: remote.keepRemote,
    pollIntervalMs: remote.pollIntervalMs,
    finishDirectByMs: remote.finishDirectByMs,
  });
}
