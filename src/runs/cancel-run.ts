/** Ends a run for good. */
import type { Clock, Random } from '../core/clock.js';
import type { TellEvent } from '../core/event.js';
import type { RunRecord } from '../core/run.js';
import type { RunSummary } from '../core/run-summary.js';
import type { StopRequests } from '../core/stop-requests.js';
import type { Lane } from '../engine/lane.js';
import type { Store } from '../store/store.js';
import { loadOutputCheck } from './output-check-of.js';
import { createPrepareTask } from './prepare-task.js';
import { recoverStore } from './recover.js';
import { remoteWayOf } from './remote.js';
import { settingsOfRun } from './run-settings.js';

/**
 * Cancels what is not settled. Answers that an earlier process had paid for and could not store are recorded first,
 * since a cancelled task takes none any more.
 * @param store opened for writing, drain lock held
 */
export async function cancelRun(store: Store, run: RunRecord, salvagePath: string): Promise<RunSummary> {
  await recoverStore(store, salvagePath);
  await store.cancelRun(run.id);
  return store.summarizeRun(run.id);
}

export interface CancelBatchesOptions {
  readonly store: Store;
  readonly run: RunRecord;
  readonly lanes: readonly Lane[];
  readonly clock: Clock;
  readonly random: Random;
  readonly workerId: string;
  readonly batchFolder: string;
  readonly stop: StopRequests;
  readonly tell: TellEvent;
}

/**
 * Cancels the run's batches at their providers, and takes what was answered until then.
 * @returns false where the user did not wait for that, or a provider will not do it
 */
export async function cancelBatches(options: CancelBatchesOptions): Promise<boolean> {
  const { store, run, lanes, clock, random, workerId, batchFolder, stop, tell } = options;
  const settings = settingsOfRun(run);
  const way = remoteWayOf(run, lanes, {
    ...{ store, workerId, leaseMs: 0, clock, random, folder: batchFolder, waits: true, task: 'cancel' },
    prepare: createPrepareTask(settings, await loadOutputCheck(settings)),
    ...{ budget: null, tooManyFailures: null, onSettled: () => undefined, onNotice: tell },
  });
  const stopListening = stop.subscribe((count) => (count === 1 ? way.stop() : way.abort()));
  try {
    return (await way.run()).reason === 'drained';
  } finally {
    stopListening();
  }
}
