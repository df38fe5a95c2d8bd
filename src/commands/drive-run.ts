/** What `run` and `resume` share: connect, drain under the progress display, write the files, sum up. */

import { connect, plainHttpNotice } from '../app/composition.js';
import type { CommandContext } from '../app/context.js';
import { storeFile } from '../app/open-store.js';
import type { Settings } from '../config/settings.js';
import { EXIT_CODES, type ExitCode } from '../core/errors.js';
import type { ResultRow, TaskRow } from '../core/result-row.js';
import type { RunRecord } from '../core/run.js';
import type { RunSummary } from '../core/run-summary.js';
import type { Drain, DrainEnd, SettledTask } from '../engine/drain.js';
import type { OutputPaths } from '../results/output-paths.js';
import { resultLine } from '../results/result-line.js';
import { resultPages } from '../results/result-pages.js';
import { type WrittenRunFiles, writeRunFiles } from '../results/run-files.js';
import { openStreamSink } from '../results/sink.js';
import { executeRun } from '../runs/execute-run.js';
import { settingsOfRun } from '../runs/run-settings.js';
import type { Store } from '../store/store.js';
import type { Display } from './display.js';
import { afterTheCalls, claimOutputs, filesOf, noteWrittenFile } from './outputs.js';

export interface DriveOptions {
  readonly context: CommandContext;
  readonly display: Display;
  /** Opened for writing, drain lock held. */
  readonly store: Store;
  readonly settings: Settings;
  readonly run: RunRecord;
  readonly outputPaths: OutputPaths;
  readonly force: boolean;
  /** Standard output gets the answers that this drain brings, and none that are there already. */
  readonly onlyNew: boolean;
}

const RESULT_PAGE_ROWS = 1_000;
/** Answers may be large. */
const STREAM_PAGE_ROWS = 50;

export async function driveRun(options: DriveOptions): Promise<ExitCode> {
  const { context, display, store, run, outputPaths } = options;
  const { clock, interrupts } = context;
  const runSettings = settingsOfRun(run);
  await claimOutputs(store, run, outputPaths);
  const before = await store.summarizeRun(run.id);
  const plainHttp = plainHttpNotice(runSettings, context);
  if (plainHttp !== null) display.warn(plainHttp);
  const connection = await connect(runSettings, context);
  display.fewerConnections(connection.mostConnections, runSettings.pacing.concurrency);
  const startedAtMs = clock.monotonicMs();

  const workerId = `${context.hostName}:${context.processId}`;
  const handedOut = { completed: 0, failed: 0 };
  let drain: Drain | null = null;
  const stopListening = interrupts.subscribe((count) => {
    display.interrupted(count, drain?.snapshot().openCalls ?? 0, runSettings.pacing.graceMs);
    // Where the note cannot be written, no more is lost than the note.
    if (count === 1) void store.noteStop(workerId).catch(() => undefined);
    if (count === 1) drain?.stop();
    else drain?.abort();
  });
  const readTasks = (taskIds: readonly number[]) => store.readTasks(run.id, taskIds, false);
  const stream = outputPaths.results === null ? streamAnswers(context, readTasks, () => drain?.stop()) : null;
  let report: { end: DrainEnd; summary: RunSummary; run: RunRecord };
  try {
    report = await executeRun({
      store,
      run,
      lanes: connection.lanes,
      prices: connection.prices,
      mostConnections: connection.mostConnections,
      clock,
      random: context.random,
      workerId,
      salvagePath: `${await storeFile(context, options.settings)}.salvage.jsonl`,
      onRescue: (rescue) => display.rescued(rescue),
      onNotice: (notice) => display.notice(notice),
      onSettled: (settled) => void stream?.write(answered(settled)),
      async onShared({ settledTaskIds: taskIds, failed }) {
        handedOut.completed += taskIds.length - failed;
        handedOut.failed += failed;
        // What is handed out before the drain is printed with all that is stored.
        if (drain !== null || options.onlyNew) await stream?.write(taskIds);
      },
      interrupts: () => interrupts.count,
      async onDrain(started, before) {
        display.sharing(before);
        drain = started;
        // What was handed out so far is in the counts before the drain.
        handedOut.completed = 0;
        handedOut.failed = 0;
        if (interrupts.count > 0) started.stop();
        display.startDrain({
          drain: started,
          before,
          lanes: connection.lanes,
          handedOut,
        });
        if (!options.onlyNew)
          await stream?.writeStored(answersSoFar(store, run), () => interrupts.count === 0);
      },
    });
  } finally {
    stopListening();
    display.stop();
    await connection.close();
  }
  await stream?.finish();

  const files = await writeFiles(options);
  display.summary({
    run: report.run,
    before,
    summary: report.summary,
    end: report.end,
    files,
    elapsedMs: clock.monotonicMs() - startedAtMs,
    readerGone: stream?.readerGone ?? false,
  });
  return exitCodeOf(report.end, report.summary);
}

/** Those in the store, in input order, a page at a time. */
function answersSoFar(store: Store, run: RunRecord): AsyncIterable<readonly ResultRow[]> {
  return resultPages(
    (afterLine) =>
      store.readResults({
        runId: run.id,
        only: 'completed',
        afterLine,
        limit: STREAM_PAGE_ROWS,
        includeBody: false,
      }),
    'completed',
  );
}

/** Results so far are written however the drain ended; the store stays the source and can write them again. */
async function writeFiles(options: DriveOptions): Promise<WrittenRunFiles> {
  const { display, store, run, outputPaths, force } = options;
  display.writing();
  const files = writeRunFiles({
    paths: outputPaths,
    ownFiles: await filesOf(store, run),
    force,
    onComplete: (file) => noteWrittenFile(store, run.id, file),
    readPage: (afterLine) =>
      store.readResults({
        runId: run.id,
        only: 'all',
        afterLine,
        limit: RESULT_PAGE_ROWS,
        includeBody: false,
      }),
  });
  try {
    return await files;
  } catch (error) {
    throw await afterTheCalls(store, run, error);
  } finally {
    display.stop();
  }
}

/**
 * `-o -`: the answers that are there go to standard output first, then each new one once it is committed, in the order
 * of the commits. They are read from the store, so that a line is the very one that a file would have.
 * @param onEnd told when nothing can be written there any more
 */
function streamAnswers(
  context: CommandContext,
  readTasks: (taskIds: readonly number[]) => Promise<readonly TaskRow[]>,
  onEnd: () => void,
) {
  const sink = openStreamSink(context.stdout, 'standard output');
  let failure: unknown = null;
  let written = Promise.resolve();
  const writeRows = async (rows: readonly TaskRow[]): Promise<void> => {
    for (const row of rows) {
      if (isCompleted(row)) await sink.write(`${resultLine(row, { includeInput: false })}\n`);
    }
    await sink.flush();
    if (sink.readerGone) onEnd();
  };
  const writePages = async (taskIds: readonly number[]): Promise<void> => {
    for (let start = 0; start < taskIds.length; start += STREAM_PAGE_ROWS) {
      if (sink.readerGone || failure !== null) return;
      await writeRows(await readTasks(taskIds.slice(start, start + STREAM_PAGE_ROWS)));
    }
  };
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    written = written.then(work).catch((error: unknown) => {
      failure ??= error;
      onEnd();
    });
    return written;
  };
  return {
    get readerGone(): boolean {
      return sink.readerGone;
    },
    /** Those of them that have an answer. Resolves, never rejects, when the reader has taken them. */
    write: (taskIds: readonly number[]): Promise<void> => inTurn(() => writePages(taskIds)),
    /** Ahead of the drain, at the pace of the reader: nothing is committed meanwhile, so each answer comes once. */
    async writeStored(pages: AsyncIterable<readonly ResultRow[]>, mayGoOn: () => boolean): Promise<void> {
      for await (const page of pages) {
        await inTurn(() => writeRows(page));
        if (sink.readerGone || failure !== null || !mayGoOn()) return;
      }
    },
    async finish(): Promise<void> {
      await written;
      if (failure !== null) throw failure;
      await sink.finish();
    },
  };
}

/** One that is tried again has no answer yet, but may have one by the time it is read. */
function answered(settled: readonly SettledTask[]): number[] {
  return settled.filter(({ outcome }) => outcome.action === 'completed').map(({ task }) => task.taskId);
}

function isCompleted(row: TaskRow): row is ResultRow {
  return row.state === 'completed';
}

function exitCodeOf(end: DrainEnd, summary: RunSummary): ExitCode {
  if (end.reason === 'halted' || end.reason === 'limit_reached') return EXIT_CODES.halted;
  if (end.reason === 'stopped') return EXIT_CODES.interrupted;
  return summary.counts.failed > 0 ? EXIT_CODES.someFailed : EXIT_CODES.completed;
}
