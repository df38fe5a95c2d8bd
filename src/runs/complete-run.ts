/** What `run` and `resume` share: drain a run that is imported, hand out its answers, write its files. */
import type { Writable } from 'node:stream';
import type { Choice, RunEvent } from '../core/event.js';
import type { RunRecord } from '../core/run.js';
import type { SendingWay } from '../engine/sending-way.js';
import type { OutputPaths } from '../results/output-paths.js';
import { type WrittenRunFiles, writeRunFiles } from '../results/run-files.js';
import type { Store } from '../store/store.js';
import { chooseTasks } from './choose-tasks.js';
import { type ExecuteOptions, executeRun, type SentRun } from './execute-run.js';
import { afterTheCalls, claimOutputs, filesOf, noteWrittenFile } from './outputs.js';
import { observationsOf } from './run-observations.js';
import { streamAnswers } from './stream-answers.js';

const PAGE_ROWS = 1_000;
/** Answers of a try that somebody may want to read in a terminal; all are in the results. */
const MOST_SHOWN = 50;

export interface RunOutputs {
  readonly paths: OutputPaths;
  /** Files that others wrote may be replaced. */
  readonly force: boolean;
  /** Where answers go while `paths.results` is null. */
  readonly stream: Writable;
  /** The stream gets the answers that this drain brings, and none that are there already. */
  readonly onlyNew: boolean;
}

export interface CompleteOptions extends Omit<ExecuteOptions, 'onAnswers' | 'onReady' | 'among'> {
  /** To be tried; null: all of the run. */
  readonly choice: Choice | null;
  readonly outputs: RunOutputs;
}

/**
 * Results so far are written however the drain ended; the store stays the source and can write them again.
 * @throws LlmBatchError (exit 5) for a store or files that cannot be written
 */
export async function completeRun(options: CompleteOptions): Promise<SentRun> {
  const { store, run, choice, clock, stop, tell, outputs } = options;
  const startedAtMs = clock.monotonicMs();
  await claimOutputs(store, run, outputs.paths);
  const before = await store.summarizeRun(run.id);
  const among = choice === null ? undefined : await chooseTasks(store, run.id, choice);
  let drain: Pick<SendingWay, 'stop'> | null = null;
  const stream =
    outputs.paths.results === null ? streamAnswers(store, run.id, outputs.stream, () => drain?.stop()) : null;
  const report = await executeRun({
    ...options,
    among,
    async onAnswers(taskIds) {
      // What is handed out before the drain is printed with all that is stored.
      if (drain !== null || outputs.onlyNew) await stream?.write(taskIds);
    },
    async onReady(ready) {
      drain = ready;
      if (!outputs.onlyNew) await stream?.writeStored(() => stop.count === 0);
    },
  });
  await stream?.finish();

  const { resultsPath, errorsPath } = await writeFiles(options);
  const files = { resultsPath, errorsPath };
  tell({ type: 'written', run: run.name, files });
  const { end, summary } = report;
  if (choice !== null && among !== undefined) tell(await triedOf(store, run, choice, among));
  tell({
    type: 'ended',
    run: report.run,
    before,
    summary,
    end,
    files,
    elapsedMs: clock.monotonicMs() - startedAtMs,
    prices: observationsOf(report.run).prices,
    readerGone: stream?.readerGone ?? false,
  });
  return { end, summary };
}

async function triedOf(
  store: Store,
  { id, simulated }: RunRecord,
  { by }: Choice,
  among: readonly number[],
): Promise<RunEvent> {
  const taken = await store.readTasks(id, among, false);
  const costs = taken.flatMap(({ costMicroUsd }) => (costMicroUsd === null ? [] : [costMicroUsd]));
  const { counts } = await store.summarizeRun(id);
  const documents = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const isPriced = costs.length > 0 && !simulated;
  const mean = costs.reduce((sum, cost) => sum + cost, 0) / costs.length;
  return {
    type: 'tried',
    by,
    chosen: among.length,
    documents,
    answers: await store.readTasks(id, among.slice(0, MOST_SHOWN)),
    wholeCostMicroUsd: isPriced ? Math.round(mean * documents) : null,
    simulated,
  };
}

async function writeFiles({ store, run, outputs }: CompleteOptions): Promise<WrittenRunFiles> {
  try {
    return await writeRunFiles({
      paths: outputs.paths,
      ownFiles: await filesOf(store, run),
      force: outputs.force,
      onComplete: (file) => noteWrittenFile(store, run.id, file),
      readPage: (afterLine) =>
        store.readResults({ runId: run.id, only: 'all', afterLine, limit: PAGE_ROWS, includeBody: false }),
    });
  } catch (error) {
    throw await afterTheCalls(store, run, error);
  }
}
