/**
 * Equal requests may share an answer: those of a run with each other (`--dedupe`), and with what earlier runs in the
 * same store were answered (`--reuse`). Both are paired before the drain, when nobody works on the run, and anew at each
 * start: an edited input, a retry or a deleted run may have changed who equals whom.
 */
import { nextTurn } from '../core/clock.js';
import { digest } from '../core/digest.js';
import type { RunRecord } from '../core/run.js';
import type { SharedPage, Store } from '../store/store.js';
import { imageFolderOf, lanesOf, type RunSettings, settingsOfRun } from './run-settings.js';

/** Short enough that Ctrl-C and the display are not kept waiting. */
const TASKS_PER_PAGE = 2_000;

export interface ShareOptions {
  readonly store: Store;
  readonly run: RunRecord;
  /** Told of the documents that have taken an answer, or the failure in place of one, page by page. */
  readonly onShared: (page: SharedPage) => Promise<void>;
  /** How often the user has asked to stop. When it rises, what is not paired or handed out yet is left to the next start. */
  readonly interrupts: () => number;
}

/** Pairs the open documents of a run and gives them the answers that are there already. */
export async function pairDocuments(options: ShareOptions): Promise<void> {
  const { store, run, interrupts } = options;
  const interruptsBefore = interrupts();
  const { dedupe, reuse } = settingsOfRun(run).sharing;
  const { shared } = await store.summarizeRun(run.id);
  if (!dedupe && !reuse && shared.waiting === 0) return;
  const reuseFrom = reuse ? await reusableRuns(store, run) : [];
  let cursor: string | null = null;
  do {
    cursor = await store.pairTasks({ runId: run.id, dedupe, reuseFrom }, cursor, TASKS_PER_PAGE);
    await nextTurn();
    if (cursor !== null && interrupts() > interruptsBefore) return;
  } while (cursor !== null);
  await settlePairs(options);
}

/** Gives the documents that wait for an equal one what that has come to, as far as it is settled. */
export async function settlePairs(options: ShareOptions): Promise<void> {
  const { store, run, onShared, interrupts } = options;
  const interruptsBefore = interrupts();
  let afterTaskId: number | null = 0;
  while (afterTaskId !== null && interrupts() === interruptsBefore) {
    const page: SharedPage = await store.settlePairs(run.id, afterTaskId, TASKS_PER_PAGE);
    if (page.settledTaskIds.length > 0) await onShared(page);
    afterTaskId = page.lastTaskId;
    await nextTurn();
  }
}

/** The runs whose answers this one would get as well. Made-up answers never stand for real ones. */
async function reusableRuns(store: Store, run: RunRecord): Promise<number[]> {
  const wanted = answererOf(settingsOfRun(run));
  const reusable: number[] = [];
  for (const other of await store.listRuns()) {
    if (other.id === run.id || other.simulated !== run.simulated) continue;
    if ((await answererSoFar(store, other)) === wanted) reusable.push(other.id);
  }
  return reusable;
}

/**
 * Who has given the answers that a run has.
 * @returns as `answererOf`; null for a run that was resumed at another server: which answers are whose nobody can tell
 */
export async function answererSoFar(store: Store, run: RunRecord): Promise<string | null> {
  const settings = settingsOfRun(run);
  const lanes = new Set(lanesOf(settings).map(({ name }) => name));
  const summary = await store.summarizeRun(run.id);
  return summary.lanes.every(({ lane }) => lanes.has(lane)) ? answererOf(settings) : null;
}

/**
 * Equal where equal requests get answers that are worth the same: sent to the same servers, under the same names of
 * models, and checked in the same way.
 */
export function answererOf(settings: RunSettings): string {
  // A gateway goes by its headers to one provider or another.
  const servers = lanesOf(settings).map(({ baseUrl, models, headers }) =>
    JSON.stringify(Object.keys(headers).length === 0 ? [baseUrl, models] : [baseUrl, models, headers]),
  );
  // A request's hash has a picture's path as the document gives it: in another folder that is another picture.
  const folder = imageFolderOf(settings.request);
  return digest(JSON.stringify([[...new Set(servers)].sort(), settings.answers.check, folder]));
}
