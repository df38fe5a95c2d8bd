/** Ends a run for good. */
import type { Clock } from '../core/clock.js';
import type { RunRecord } from '../core/run.js';
import type { RunSummary } from '../core/run-summary.js';
import type { Store } from '../store/store.js';
import { recoverStore } from './recover.js';

/**
 * Cancels what is not settled. Answers that an earlier process had paid for and could not store are recorded first,
 * since a cancelled task takes none any more.
 * @param store opened for writing, drain lock held
 */
export async function cancelRun(
  store: Store,
  run: RunRecord,
  { clock, salvagePath }: { readonly clock: Clock; readonly salvagePath: string },
): Promise<RunSummary> {
  await recoverStore(store, salvagePath, clock);
  await store.cancelRun(run.id, clock.now());
  return store.summarizeRun(run.id);
}
