/**
 * `-o -`: the answers that are there go to standard output first, then each new one once it is committed, in the order
 * of the commits. They are read from the store, so that a line is the very one that a file would have.
 */
import type { Writable } from 'node:stream';
import type { ResultRow, TaskRow } from '../core/result-row.js';
import { resultLine } from '../results/result-line.js';
import { openStreamSink } from '../results/sink.js';
import type { Store } from '../store/store.js';
import { storedResults } from './stored-results.js';

/** Answers may be large. */
const PAGE_ROWS = 50;

export interface AnswerStream {
  /** The reader went away (`| head`): what is written after that is dropped. */
  readonly readerGone: boolean;
  /** Those of the tasks that have an answer. Resolves, never rejects, when the reader has taken them. */
  write(taskIds: readonly number[]): Promise<void>;
  /** Ahead of the drain, at the pace of the reader: nothing is committed meanwhile, so each answer comes once. */
  writeStored(mayGoOn: () => boolean): Promise<void>;
  /** @throws what went wrong while it was written */
  finish(): Promise<void>;
}

/** @param onEnd told when nothing can be written there any more */
export function streamAnswers(
  store: Store,
  runId: number,
  output: Writable,
  onEnd: () => void,
): AnswerStream {
  const sink = openStreamSink(output, 'standard output');
  let failure: unknown = null;
  let written = Promise.resolve();
  const isOver = (): boolean => sink.readerGone || failure !== null;
  const writeRows = async (rows: readonly TaskRow[]): Promise<void> => {
    for (const row of rows) {
      if (isCompleted(row)) await sink.write(`${resultLine(row, { includeInput: false })}\n`);
    }
    await sink.flush();
    if (sink.readerGone) onEnd();
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
    write: (taskIds) =>
      inTurn(async () => {
        for (let start = 0; start < taskIds.length && !isOver(); start += PAGE_ROWS) {
          await writeRows(await store.readTasks(runId, taskIds.slice(start, start + PAGE_ROWS), false));
        }
      }),
    async writeStored(mayGoOn) {
      for await (const page of storedResults(store, runId, 'completed', PAGE_ROWS)) {
        await inTurn(() => writeRows(page));
        if (isOver() || !mayGoOn()) return;
      }
    },
    async finish() {
      await written;
      if (failure !== null) throw failure;
      await sink.finish();
    },
  };
}

/** One that is tried again has no answer yet, but may have one by the time it is read. */
function isCompleted(row: TaskRow): row is ResultRow {
  return row.state === 'completed';
}
