/**
 * Removes runs from the store, and gives their room back. First a run is marked as deleted, which is the moment it is
 * gone; what it had is then removed in pages, each a transaction of its own, with a pause as long between them: a
 * process that drains another run gets its commits in, and a kill in the middle leaves nothing that looks like a run.
 */
import type { Clock } from '../core/clock.js';
import { LlmBatchError } from '../core/errors.js';
import type { RunRecord } from '../core/run.js';
import type { Store } from '../store/store.js';
import { findRun } from './find-run.js';
import { openBatches } from './ways.js';

export interface OldRun {
  readonly run: RunRecord;
  readonly documents: number;
  /** That go on at the provider whether or not the run is there. */
  readonly openBatches: number;
  /** When it was created, a call of it was last heard of, or its last drain ended: the latest of them. */
  readonly lastActiveAtMs: number;
}

export interface PruneOptions {
  readonly clock: Clock;
  /** Aborting it ends after the page at hand; the next prune goes on. */
  readonly signal: AbortSignal;
}

export interface PruneReport {
  readonly deleted: readonly RunRecord[];
  readonly reclaimedBytes: number;
  /** False when it was interrupted: some of what the runs had is still there. */
  readonly isComplete: boolean;
}

const FIRST_PAGE = { rows: 500, bytes: 1_000_000 };
const LARGEST_PAGE = { rows: 20_000, bytes: 16_000_000 };
/** How long another process may have to wait for its turn to write. */
const PAGE_MS = 30;

export interface PruneChoice {
  /** Empty: all runs of that age. */
  readonly names: readonly string[];
  /** 0: of any age. */
  readonly olderThanMs: number;
}

/**
 * Runs of these names, without activity for so long, oldest first; the one that is being drained or imported now is none
 * of them.
 * @throws LlmBatchError (exit 2) RUN_UNKNOWN
 */
export async function findRunsToPrune(
  store: Store,
  { names, olderThanMs }: PruneChoice,
  nowMs: number,
): Promise<OldRun[]> {
  for (const name of names) await findRun(store, name);
  const old: OldRun[] = [];
  for (const run of await store.listRuns()) {
    if (names.length > 0 && !names.includes(run.name)) continue;
    if ((await store.readOwner(run.name))?.runName === run.name) continue;
    const { counts, gone, lastCallAtMs } = await store.summarizeRun(run.id);
    const lastActiveAtMs = Math.max(run.createdAtMs, run.stoppedAtMs ?? 0, lastCallAtMs ?? 0);
    if (nowMs - lastActiveAtMs < olderThanMs) continue;
    const documents = Object.values(counts).reduce((sum, count) => sum + count, gone);
    const { length: openCount } = await openBatches(store, run);
    old.push({ run, documents, openBatches: openCount, lastActiveAtMs });
  }
  return old.reverse();
}

/** Deletes these runs, and finishes what a prune before was killed at. A run that is drained meanwhile is left. */
export async function pruneRuns(
  store: Store,
  runs: readonly RunRecord[],
  options: PruneOptions,
): Promise<PruneReport> {
  const deleted: RunRecord[] = [];
  for (const run of runs) {
    if (options.signal.aborted) break;
    if (await deleteUnlessBusy(store, run)) deleted.push(run);
  }
  let reclaimedBytes = 0;
  let cursor: string | null = null;
  const isSwept = await inPages('rows', options, async (limit) => {
    cursor = await store.maintenance.sweepDeletedRuns(cursor, limit);
    return cursor === null;
  });
  const isReclaimed =
    isSwept &&
    (await inPages('bytes', options, async (limit) => {
      const page = await store.maintenance.reclaimSpace(limit);
      reclaimedBytes += page.reclaimedBytes;
      return page.reclaimedBytes === 0;
    }));
  return { deleted, reclaimedBytes, isComplete: isReclaimed };
}

/** Deletes one run wholly: the own one of a process whose import was refused. */
export async function removeRun(store: Store, runId: number): Promise<void> {
  await store.deleteRun(runId);
  let cursor: string | null = null;
  do cursor = await store.maintenance.sweepDeletedRuns(cursor, FIRST_PAGE.rows);
  while (cursor !== null);
}

async function deleteUnlessBusy(store: Store, run: RunRecord): Promise<boolean> {
  try {
    await store.deleteRun(run.id);
    return true;
  } catch (error) {
    // Resumed, or deleted by another, since the user was asked.
    const isBusy = error instanceof LlmBatchError && ['STORE_LOCKED', 'RUN_MISSING'].includes(error.code);
    if (isBusy) return false;
    throw error;
  }
}

/** Calls `page` until it is done, each as large as fits its time. @returns false when it was interrupted */
async function inPages(
  unit: keyof typeof FIRST_PAGE,
  { clock, signal }: PruneOptions,
  page: (limit: number) => Promise<boolean>,
): Promise<boolean> {
  let limit = FIRST_PAGE[unit];
  while (!signal.aborted) {
    const startedAtMs = clock.monotonicMs();
    if (await page(limit)) return true;
    const tookMs = clock.monotonicMs() - startedAtMs;
    if (tookMs > PAGE_MS) limit = Math.max(1, Math.floor(limit / 2));
    else if (tookMs < PAGE_MS / 2) limit = Math.min(LARGEST_PAGE[unit], limit * 2);
    await clock.sleep(Math.min(tookMs, PAGE_MS), signal);
  }
  return false;
}
