/** What is told of a store, or a run of it, that somebody else has. */
import { EXIT_CODES, LlmBatchError } from '../core/errors.js';
import type { StoreOwner } from './store.js';

/** @param place of the store @param owner null: nobody knows who */
export function storeLocked(place: string, owner: StoreOwner | null): LlmBatchError {
  const who =
    owner === null
      ? 'another process'
      : `process ${owner.pid} on ${owner.host} (${owner.runName === null ? 'a worker of all runs' : `run "${owner.runName}"`}) since ${new Date(owner.sinceMs).toISOString()}`;
  return new LlmBatchError(`${place} is being drained by ${who}.`, {
    code: 'STORE_LOCKED',
    exitCode: EXIT_CODES.store,
  });
}
