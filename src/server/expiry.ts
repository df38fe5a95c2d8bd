/** Removes what has lived its time: single tasks and their results, and runs that were handed in whole. */
import type { Clock } from '../core/clock.js';
import { mayPass } from '../engine/store-trouble.js';
import { findRunsToPrune, pruneRuns } from '../runs/prune-runs.js';
import type { Store } from '../store/store.js';

export interface ExpiryOptions {
  readonly store: Store;
  readonly ttlMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const PAGE_TASKS = 200;
/** How often it is looked, in a time to live: a result is kept for so much longer at most. */
const LOOKS = 24;
const LONGEST_WAIT_MS = 10 * 60_000;

/** Looks now and again until the signal. */
export async function expireInTurn(options: ExpiryOptions): Promise<void> {
  const { ttlMs, clock, signal } = options;
  while (!signal.aborted) {
    try {
      await expireOld(options);
    } catch (error) {
      // A full disk, or a lock that another holds: the next look goes on.
      if (!mayPass(error)) throw error;
    }
    await clock.sleep(Math.min(LONGEST_WAIT_MS, ttlMs / LOOKS), signal);
  }
}

/** Removes all that is old enough, in pages with pauses between: submissions and drains come in between. */
export async function expireOld({ store, ttlMs, clock, signal }: ExpiryOptions): Promise<void> {
  let cursor: string | null = null;
  do {
    const startedAtMs = clock.monotonicMs();
    cursor = await store.served.expire(ttlMs, cursor, PAGE_TASKS);
    if (cursor !== null) await clock.sleep(clock.monotonicMs() - startedAtMs, signal);
  } while (cursor !== null && !signal.aborted);
  const bulk = new Set(
    (await store.served.listRuns()).flatMap(({ runId, isBulk }) => (isBulk ? [runId] : [])),
  );
  if (bulk.size === 0) return;
  const old = await findRunsToPrune(store, { names: [], olderThanMs: ttlMs }, clock.now());
  const ended = old.map(({ run }) => run).filter(({ id, status }) => bulk.has(id) && ENDED.includes(status));
  if (ended.length > 0) await pruneRuns(store, ended, { clock, signal });
}

const ENDED: readonly string[] = ['finished', 'cancelled'];
