/** Ends a run for good. */
import type { RunRecord } from '../core/run.js';
import type { RunSummary } from '../core/run-summary.js';
import type { Store } from '../store/store.js';
import { recoverStore } from './recover.js';

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
