/** What `run` and `resume` share: connect, drain under the progress display, write the files, sum up. */
import type { Settings } from '../config/settings.js';
import { EXIT_CODES, type ExitCode } from '../core/errors.js';
import type { Drain, DrainEnd } from '../engine/drain.js';
import type { OutputPaths } from '../results/output-paths.js';
import { resultLine } from '../results/result-line.js';
import { type WrittenRunFiles, writeRunFiles } from '../results/run-files.js';
import { openStreamSink } from '../results/sink.js';
import { executeRun } from '../runs/execute-run.js';
import { settingsOfRun } from '../runs/run-settings.js';
import type { ResultRow, RunRecord, RunSummary, Store } from '../store/store.js';
import { connect } from './composition.js';
import type { CommandContext } from './context.js';
import type { Display } from './display.js';
import { storeFile } from './open-store.js';
import { claimOutputs, disclaimOutputs } from './outputs.js';
import { settledRowOf, settledTaskRow } from './settled-row.js';

export interface DriveOptions {
  readonly context: CommandContext;
  readonly display: Display;
  /** Opened for writing, drain lock held. */
  readonly store: Store;
  readonly settings: Settings;
  readonly run: RunRecord;
  readonly outputPaths: OutputPaths;
  /** As `checkOutputs` found them before the first call. */
  readonly replaceablePaths: readonly string[];
  readonly force: boolean;
}

const RESULT_PAGE_ROWS = 1_000;
/** Rows with their documents, which may be large. */
const STREAM_PAGE_ROWS = 50;

export async function driveRun(options: DriveOptions): Promise<ExitCode> {
  const { context, display, store, run, outputPaths } = options;
  const { clock, interrupts } = context;
  const runSettings = settingsOfRun(run);
  await claimOutputs(store, run, outputPaths);
  const before = await store.summarizeRun(run.id);
  const connection = await connect(runSettings, context);
  display.fewerConnections(connection.mostConnections, runSettings.pacing.concurrency);
  const startedAtMs = clock.monotonicMs();

  const handedOut = { completed: 0, failed: 0 };
  let drain: Drain | null = null;
  const stopListening = interrupts.subscribe((count) => {
    display.interrupted(count, drain?.snapshot().openCalls ?? 0, runSettings.pacing.graceMs);
    // Where the note cannot be written, no more is lost than the note.
    if (count === 1) void store.noteStop().catch(() => undefined);
    if (count === 1) drain?.stop();
    else drain?.abort();
  });
  const stream = outputPaths.results === null ? streamAnswers(context, () => drain?.stop()) : null;
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
      workerId: `${context.hostName}:${context.processId}`,
      salvagePath: `${await storeFile(context, options.settings)}.salvage.jsonl`,
      onRescue: (rescue) => display.rescued(rescue),
      onNotice: (notice) => display.notice(notice),
      onSettled: (settled) => void stream?.write(settled.map(settledRowOf)),
      async onShared({ settledTaskIds: taskIds, failed }) {
        handedOut.completed += taskIds.length - failed;
        handedOut.failed += failed;
        for (let start = 0; start < taskIds.length; start += STREAM_PAGE_ROWS) {
          if (stream === null || stream.readerGone) return;
          const page = await store.readTasks(run.id, taskIds.slice(start, start + STREAM_PAGE_ROWS));
          await stream.write(page.map(settledTaskRow));
        }
      },
      interrupts: () => interrupts.count,
      onDrain(started, before) {
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

/** Results so far are written however the drain ended; the store stays the source and can write them again. */
async function writeFiles(options: DriveOptions): Promise<WrittenRunFiles> {
  const { display, store, run, outputPaths, replaceablePaths, force } = options;
  display.writing();
  const files = writeRunFiles({
    paths: outputPaths,
    ownedPaths: replaceablePaths,
    force,
    includeInput: false,
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
    throw await disclaimOutputs(store, run, error);
  } finally {
    display.stop();
  }
}

/**
 * `-o -`: each answer goes to standard output once it is committed, in the order of the commits.
 * @param onEnd told when nothing can be written there any more
 */
function streamAnswers(context: CommandContext, onEnd: () => void) {
  const sink = openStreamSink(context.stdout, 'standard output');
  let failure: unknown = null;
  const failed = (error: unknown): void => {
    failure ??= error;
    onEnd();
  };
  return {
    get readerGone(): boolean {
      return sink.readerGone;
    },
    /** Resolves, never rejects, when the reader has taken them. */
    write(rows: readonly (ResultRow | null)[]): Promise<void> {
      for (const row of rows) {
        if (row?.state === 'completed') {
          sink.write(`${resultLine(row, { includeInput: false })}\n`)?.catch(failed);
        }
      }
      return sink.flush().then(() => {
        if (sink.readerGone) onEnd();
      }, failed);
    },
    async finish(): Promise<void> {
      if (failure !== null) throw failure;
      await sink.finish();
    },
  };
}

function exitCodeOf(end: DrainEnd, summary: RunSummary): ExitCode {
  if (end.reason === 'halted' || end.reason === 'limit_reached') return EXIT_CODES.halted;
  if (end.reason === 'stopped') return EXIT_CODES.interrupted;
  return summary.counts.failed > 0 ? EXIT_CODES.someFailed : EXIT_CODES.completed;
}
