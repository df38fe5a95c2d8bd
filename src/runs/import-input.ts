/**
 * From an input to tasks. A first import streams straight into the store. Running the same input again is two
 * passes: the first only compares (and finds bad lines) so that the user can be asked before anything changes,
 * the second brings the run in line with the input. A crash anywhere leaves the run `importing`; the next `run`
 * goes on, since keys make every step repeatable.
 */
import { EXIT_CODES, LlmBatchError, usageError } from '../core/errors.js';
import type { ImportCounts, ImportPlan } from '../core/event.js';
import type { JsonObject } from '../core/json.js';
import type { RunRecord } from '../core/run.js';
import type { NewTask } from '../core/task.js';
import type { PreparedDocument } from '../documents/read.js';
import type { BadLine } from '../input/bad-line.js';
import type { Answerers, ImportMatch, ReimportOptions, Store } from '../store/store.js';
import { removeRun } from './prune-runs.js';

export interface TaskPage {
  readonly documents: readonly (NewTask & Partial<Pick<PreparedDocument, 'document' | 'request'>>)[];
  readonly bad: readonly BadLine[];
  readonly duplicates: number;
}

export interface ImportOptions {
  readonly store: Store;
  readonly run: RunRecord;
  /** Opens the input anew for each pass. */
  readonly readPages: () => AsyncIterable<TaskPage>;
  /** Bad lines are handed to `onBadLines` either way; unless skipped they fail the import. */
  readonly skipBadLines: boolean;
  readonly onBadLines: (bad: readonly BadLine[]) => Promise<void> | void;
  readonly signal: AbortSignal;
  /** Opens a new run that has all its documents; absent: nothing else belongs to that. */
  readonly open?: () => Promise<void>;
}

/**
 * First import of a new run, or the rest of one that was cut off.
 * @throws LlmBatchError (exit 2) for bad lines or an input that cannot be read; the run is then deleted: nothing
 *   was called, nothing is kept
 */
export async function importNew(options: ImportOptions): Promise<ImportCounts> {
  const { store, run } = options;
  let report: ImportCounts;
  try {
    report = await eachPage(options, async (documents, badSoFar) => {
      // After a bad line the import is lost unless they are skipped: only read on, to report them all at once.
      if (badSoFar > 0 && !options.skipBadLines) return;
      await store.addTasks(run.id, documents);
    });
    refuseBadLines(report, options.skipBadLines);
    refuseEmpty(report);
  } catch (error) {
    const isRefused = error instanceof LlmBatchError && error.exitCode === EXIT_CODES.usage;
    if (isRefused) await removeRun(store, run.id);
    throw error;
  }
  if (options.open === undefined) await store.updateRun(run.id, { status: 'open' });
  else await options.open();
  return report;
}

/** Compares without changing anything. @throws LlmBatchError INPUT_BAD_LINES (exit 2) */
export async function planImport(options: ImportOptions, answerers: Answerers): Promise<ImportPlan> {
  const { store, run } = options;
  const tally: Record<ImportMatch, number> = {
    new: 0,
    unchanged: 0,
    changed_open: 0,
    changed_finished: 0,
    answered_before: 0,
  };
  const report = await eachPage(options, async (documents) => {
    const matches = await store.matchTasks(run.id, documents, answerers.fromNowOn);
    for (const match of matches) tally[match] += 1;
  });
  refuseBadLines(report, options.skipBadLines);
  refuseEmpty(report);
  const { counts, gone } = await store.summarizeRun(run.id);
  const present = Object.values(counts).reduce((sum, count) => sum + count, gone);
  const matched = report.documents - tally.new;
  return {
    ...report,
    unchanged: tally.unchanged,
    changedOpen: tally.changed_open,
    changedFinished: tally.changed_finished,
    answeredBefore: tally.answered_before,
    added: tally.new,
    gone: Math.max(0, present - matched),
  };
}

/**
 * Carries out what was planned. Until the last page the run has the settings that its answers were given under, so that
 * after a crash in the middle nobody is wrong about whose those are; no one goes on with a run that is importing.
 * @param settings that hold from here on: what is open is sent as the user asks now
 */
export async function applyImport(
  options: ImportOptions,
  reimport: ReimportOptions,
  settings: JsonObject,
): Promise<RunRecord> {
  const { store, run } = options;
  await store.beginReimport(run.id);
  await eachPage({ ...options, onBadLines: () => undefined }, async (documents) => {
    await store.reimportTasks(run.id, documents, reimport);
  });
  await store.updateRun(run.id, { settings });
  await store.finishReimport(run.id);
  return store.updateRun(run.id, { status: 'open' });
}

async function eachPage(
  options: ImportOptions,
  take: (documents: readonly NewTask[], badSoFar: number) => Promise<void>,
): Promise<ImportCounts> {
  let documents = 0;
  let badLines = 0;
  let duplicates = 0;
  try {
    for await (const page of options.readPages()) {
      if (options.signal.aborted) break;
      badLines += page.bad.length;
      duplicates += page.duplicates;
      if (page.bad.length > 0) await options.onBadLines(page.bad);
      // The store may be on another thread: it gets what it keeps, and not all that was made of it on the way.
      await take(
        page.documents.map(({ document, request, ...task }) => task),
        badLines,
      );
      documents += page.documents.length;
    }
  } catch (error) {
    // An input that was closed for it complains in its own words.
    if (!options.signal.aborted) throw error;
  }
  if (options.signal.aborted) throw new ImportInterrupted();
  return { documents, badLines, duplicates };
}

/** Ctrl-C while importing; the next `run` of the same input goes on. */
export class ImportInterrupted extends Error {}

function refuseBadLines({ badLines, documents }: ImportCounts, skipBadLines: boolean): void {
  if (badLines === 0 || skipBadLines) return;
  throw usageError(
    'INPUT_BAD_LINES',
    `The input has ${badLines} bad ${badLines === 1 ? 'line' : 'lines'}; no call was made.`,
    { badLines, documents },
  );
}

function refuseEmpty(report: ImportCounts): void {
  if (report.documents > 0) return;
  throw usageError('INPUT_EMPTY', 'The input holds no document; no call was made.', 'check the path');
}
