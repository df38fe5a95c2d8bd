/** Ends a run for good. */
import type { Clock, Random } from '../core/clock.js';
import type { TellEvent } from '../core/event.js';
import type { RunRecord } from '../core/run.js';
import type { RunSummary } from '../core/run-summary.js';
import type { StopRequests } from '../core/stop-requests.js';
import type { Lane } from '../engine/lane.js';
import { type SendingWay, WaysInTurn } from '../engine/sending-way.js';
import type { Store } from '../store/store.js';
import { directWayOf } from './direct.js';
import { LEASE_MS } from './execute-run.js';
import { loadOutputCheck } from './output-check-of.js';
import { createPrepareTask } from './prepare-task.js';
import { recoverStore } from './recover.js';
import { openBatches, remoteWayOf } from './remote.js';
import { eventOf } from './run-events.js';
import { settingsOfRun } from './run-settings.js';
import { saveSalvage } from './salvage.js';

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

export interface CancelOptions {
  readonly store: Store;
  readonly run: RunRecord;
  readonly lanes: readonly Lane[];
  readonly clock: Clock;
  readonly random: Random;
  readonly workerId: string;
  readonly batchFolder: string;
  /** Where answers go that the store cannot take. */
  readonly salvagePath: string;
  readonly stop: StopRequests;
  readonly tell: TellEvent;
}

/**
 * Cancels what the run has at providers, batches and background responses, and takes what was answered until then.
 * @returns false where the user did not wait for that, or a provider will not do it
 */
export async function cancelAtProviders(options: CancelOptions): Promise<boolean> {
  const { store, run, lanes, clock, random, workerId, batchFolder, salvagePath, stop, tell } = options;
  const settings = settingsOfRun(run);
  const shared = {
    ...{ store, workerId, leaseMs: LEASE_MS, clock, random, task: 'cancel' as const },
    prepare: createPrepareTask(settings, await loadOutputCheck(settings)),
    ...{ budget: null, tooManyFailures: null, onSettled: () => undefined },
  };
  const responses = directWayOf(run, {
    ...{ ...shared, lanes, mostConnections: 1, isUntried: false },
    salvage: (settlements) => saveSalvage(salvagePath, settlements),
    onNotice: (notice) => tell(eventOf(notice, null)),
  });
  const areBatchesOpen = (await openBatches(store, run, 'batch')).length > 0;
  const way: SendingWay = areBatchesOpen
    ? new WaysInTurn(
        remoteWayOf(run, lanes, {
          ...{ ...shared, folder: batchFolder, waits: true, onNotice: tell },
        }),
        responses,
      )
    : responses;
  const stopListening = stop.subscribe((count) => (count === 1 ? way.stop() : way.abort()));
  try {
    return (await way.run()).reason === 'drained';
  } finally {
    stopListening();
  }
}
