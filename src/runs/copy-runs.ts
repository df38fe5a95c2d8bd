/** Moves the runs of a store to another, where they go on with nothing sent twice. */
import { copyRows } from '../store/row-copy.js';
import type { Store } from '../store/store.js';
import { recoverStore } from './recover.js';
import { settingsOfRun, settingsToJson } from './run-settings.js';

export interface CopyRunsOptions {
  /** Opened to change it, drain lock held; it stays as it is. */
  readonly source: Store;
  readonly target: Store;
  /** Of the source. */
  readonly salvagePath: string;
  /** Aborting it ends after the page at hand; nothing of the copy is kept then. */
  readonly signal: AbortSignal;
  readonly onProgress: (copied: number, total: number) => void;
}

/** @returns null when it was interrupted @throws LlmBatchError COPY_* (exit 2), STORE_* (exit 5) */
export async function copyRuns(options: CopyRunsOptions) {
  const { source, target, salvagePath, signal, onProgress } = options;
  // What a process that died had in progress belongs to nobody in the copy either.
  await recoverStore(source, salvagePath);
  const counts = await copyRows(source, target, {
    settingsOf: (run) => settingsToJson(settingsOfRun(run), target),
    ...{ signal, onProgress },
  });
  if (counts === null) return null;
  const { documents = 0, results = 0 } = counts;
  return { runs: await source.listRuns(), documents, results };
}
