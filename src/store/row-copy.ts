/**
 * Moves all runs of a store to another one, row by row as they are stored, so that nothing of a run is lost on the way and
 * no part of the program has to know how to write what it only reads. The runs are there with the last page and not before.
 */
import { type BatchState, isAtProvider } from '../core/batch-record.js';
import { EXIT_CODES, LlmBatchError, usageError } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import type { RunRecord } from '../core/run.js';
import type { Store } from './store.js';
import { COPIED_TABLES, type Numbers, type RowCounts, type StoredRow } from './stored-rows.js';

export interface CopyOptions {
  /** Settings of a run without what holds for its place in the source alone. */
  readonly settingsOf: (run: RunRecord) => JsonObject;
  readonly signal: AbortSignal;
  /** Told after each page. */
  readonly onProgress: (copied: number, total: number) => void;
}

/**
 * @param source nobody drains it, and nothing is in progress in it
 * @returns how many rows of each table; null when it was interrupted
 * @throws LlmBatchError COPY_* (exit 2), STORE_* (exit 5)
 */
export async function copyRows(
  source: Store,
  target: Store,
  options: CopyOptions,
): Promise<RowCounts | null> {
  const { rowSource } = source;
  const { rowTarget } = target;
  if (rowSource === null || rowTarget === null) throw wrongDirection();
  for (const store of [source, target]) {
    for (let cursor: string | null = null; ; ) {
      cursor = await store.maintenance.sweepDeletedRuns(cursor, 1_000);
      if (cursor === null) break;
    }
  }
  const runs = await source.listRuns();
  const places = new Map(runs.map((run) => [run.id, placeColumns(run, options.settingsOf(run))]));
  const counts = await rowSource.countRows();
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  try {
    const raisedBy = await rowTarget.begin(
      runs.map(({ name }) => name),
      await rowSource.lastNumbers(),
    );
    refuseOpenBatches(await statesAtProviders(source, runs), raisedBy);
    let copied = 0;
    for (const table of COPIED_TABLES) {
      for (let after: StoredRow | null = null; ; ) {
        if (options.signal.aborted) return null;
        const rows: readonly StoredRow[] = await rowSource.readRows(table, after);
        after = rows.at(-1) ?? null;
        if (after === null) break;
        const placed =
          table.name === 'runs' ? rows.map((row) => ({ ...row, ...places.get(Number(row['id'])) })) : rows;
        await rowTarget.writeRows(table, placed);
        copied += rows.length;
        options.onProgress(copied, total);
      }
    }
    compare(counts, await rowTarget.countRows());
    await rowTarget.finish();
    return counts;
  } finally {
    await rowTarget.end();
  }
}

export function wrongDirection(): LlmBatchError {
  return usageError(
    'COPY_DIRECTION',
    'Runs are copied from a store in a file to one on a server, and no other way.',
  );
}

/** What a source keeps relative to its own place. */
function placeColumns(run: RunRecord, settings: JsonObject): StoredRow {
  return {
    input_path: run.inputPath,
    output_paths_json: JSON.stringify([...run.outputPaths, ...run.writtenFiles]),
    settings_json: JSON.stringify(settings),
  };
}

async function statesAtProviders(source: Store, runs: readonly RunRecord[]): Promise<readonly BatchState[]> {
  const states: BatchState[] = [];
  for (const { id } of runs) for (const { state } of await source.remote.list(id)) states.push(state);
  return states.filter(isAtProvider);
}

/** Lines of a batch name the numbers of tasks; one that may just have been created is recognised by a file beside the store. */
function refuseOpenBatches(states: readonly BatchState[], raisedBy: Numbers): void {
  if (states.length === 0 || (raisedBy.task === 0 && !states.includes('creating'))) return;
  throw usageError('COPY_OPEN_BATCHES', 'A provider is working on batches of these runs.');
}

function compare(expected: RowCounts, found: RowCounts): void {
  const wrong = COPIED_TABLES.find(({ name }) => expected[name] !== found[name]);
  if (wrong === undefined) return;
  const { name } = wrong;
  throw new LlmBatchError(
    `Of ${expected[name]} rows of ${name} there were ${found[name]} in the copy: nothing of it is kept.`,
    { code: 'COPY_INCOMPLETE', exitCode: EXIT_CODES.store },
  );
}
