/** Failed documents of a run go back to pending; nothing is called. */
import type { FailureKind } from '../core/failure.js';
import type { RunRecord } from '../core/run.js';
import type { Store } from '../store/store.js';

/**
 * @param store drain lock held
 * @param only failures of a kind, or the document of an id; null: whichever
 * @returns how many there were
 */
export async function retryRun(
  store: Store,
  run: RunRecord,
  only: { readonly kind: FailureKind | null; readonly id: string | null },
): Promise<number> {
  const count = await store.retryTasks(run.id, {
    ...(only.kind === null ? {} : { kind: only.kind }),
    ...(only.id === null ? {} : { key: only.id }),
  });
  if (count > 0) await store.updateRun(run.id, { status: 'open' });
  return count;
}
