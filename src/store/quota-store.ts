/** The port to quotas that several senders share: one row for each lane, which answers one question at a time. */

import type { Clock } from '../core/clock.js';
import { type QuotaAnswer, type QuotaAsk, type QuotaState, shareQuota } from '../limiter/shared-quota.js';

export interface QuotaStore {
  /**
   * Asks the row of a lane, see `shareQuota`. Not durable: after a crash of whatever keeps it, it may know less than was
   * answered, and then gives nothing until every lease has ended.
   * @param lane who is called with which key, as a digest
   * @throws LlmBatchError STORE_BUSY where it cannot be asked now; the sender has what it keeps, and no more
   */
  ask(lane: string, ask: QuotaAsk): Promise<QuotaAnswer>;
}

/** For the senders of one process. */
export function createMemoryQuotaStore(clock: Clock): QuotaStore {
  const states = new Map<string, QuotaState>();
  return {
    async ask(lane, ask) {
      const { state, answer } = shareQuota(states.get(lane) ?? null, ask, clock.monotonicMs());
      states.set(lane, state);
      return answer;
    },
  };
}
