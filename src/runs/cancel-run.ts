/** Ends a run for good. */
import type { RunRecord } from '../core/run.js';
import type { RunSummary } from '../core/run-summary.js';
import type { Store } from '../store/store.js';
import { type ExecuteOptions, LEASE_MS } from './execute-run.js';
import { loadPrepareTask } from './prepare-task.js';
import { recoverStore } from './recover.js';
import { eventOf } from './run-events.js';
import { settingsOfRun } from './run-settings.js';
import { saveSalvage } from './salvage.js';
import { wayOf } from './ways.js';

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

export type CancelOptions = Pick<
  ExecuteOptions,
  | 'store'
  | 'run'
  | 'lanes'
  | 'clock'
  | 'random'
  | 'workerId'
  | 'batchFolder'
  | 'salvagePath'
  | 'stop'
  | 'tell'
>;

/**
 * Cancels what the run has at providers, batches and background responses, and takes what was answered until then.
 * @returns false where the user did not wait for that, or a provider will not do it
 */
export async function cancelAtProviders(options: CancelOptions): Promise<boolean> {
  const { run, salvagePath, stop, tell } = options;
  const settings = settingsOfRun(run);
  const way = await wayOf(run, {
    ...{ ...options, task: 'cancel', leaseMs: LEASE_MS, waits: true, mostConnections: 1, isUntried: false },
    prepare: await loadPrepareTask(settings),
    ...{ budget: null, tooManyFailures: null, onSettled: () => undefined },
    salvage: (settlements) => saveSalvage(salvagePath, settlements),
    onNotice: (notice) => tell(eventOf(notice, null)),
  });
  const stopListening = stop.subscribe((count) => (count === 1 ? way.stop() : way.abort()));
  try {
    return (await way.run()).reason === 'drained';
  } finally {
    stopListening();
  }
}
