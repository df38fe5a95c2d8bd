/** What a process has to do first that becomes the owner of a store: the one before may have died. */
import type { RescueReport, Store } from '../store/store.js';
import { applySalvage } from './salvage.js';

/** A document whose call alone was open at this many crashes is taken for their cause. */
const CRASH_LIMIT = 3;

/**
 * Records the answers that an earlier process could not store, then puts back what dead workers left in progress. In
 * this order: a task that was put back takes no answer any more.
 * @param store drain lock held
 */
export async function recoverStore(store: Store, salvagePath: string): Promise<RescueReport> {
  await applySalvage(store, salvagePath);
  return rescueDead(store);
}

/** Puts back what workers have in progress whose lease has ended. */
export function rescueDead(store: Store): Promise<RescueReport> {
  return store.rescueTasks({ crashLimit: CRASH_LIMIT });
}
