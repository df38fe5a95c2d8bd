/** The same documents under several runs: what each answered, and what that took. */
import { usageError } from '../core/errors.js';
import type { ResultRow } from '../core/result-row.js';
import type { RunRecord } from '../core/run.js';
import type { Store } from '../store/store.js';
import { findRun } from './find-run.js';
import { storedResults } from './stored-results.js';

/** One run, of the documents that all of them have answered. */
export interface ComparedRun {
  readonly run: RunRecord;
  /** As the servers called them. */
  readonly models: readonly string[];
  /** Documents whose answer is that of the first run. */
  readonly agreeing: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Null where that of an answer is not known, or made up. */
  readonly costMicroUsd: number | null;
  /** Half of the answers took no longer; null where none was timed. */
  readonly medianLatencyMs: number | null;
}

export interface ComparedDocument {
  readonly key: string;
  /** In the first run. */
  readonly line: number;
  /** All answers are equal. */
  readonly agrees: boolean;
  /** One a run, in their order. */
  readonly answers: readonly ComparedAnswer[];
}

export interface ComparedAnswer {
  /** As people read it: its text, or its JSON. */
  readonly text: string;
  readonly row: ResultRow;
}

export interface Comparison {
  readonly runs: readonly ComparedRun[];
  /** Those that every run has answered, in the order of the first run. */
  readonly documents: readonly ComparedDocument[];
}

/**
 * Documents are the same that have the same key, and, where a key occurs several times, the same place among those.
 * Answers are equal that are, spaces around them apart, the same text. What is held are the answers to the documents that
 * the run with the fewest has answered.
 * @throws LlmBatchError (exit 2) COMPARE_ONE, RUN_UNKNOWN
 */
export async function compareRuns(store: Store, names: readonly string[]): Promise<Comparison> {
  const runs: RunRecord[] = [];
  for (const name of new Set(names)) runs.push(await findRun(store, name));
  if (runs.length < 2) throw usageError('COMPARE_ONE', 'One run alone cannot be compared.');
  const answered = new Map<RunRecord, number>();
  for (const run of runs) answered.set(run, (await store.summarizeRun(run.id)).counts.completed);
  const fewestFirst = [...runs].sort((one, other) => (answered.get(one) ?? 0) - (answered.get(other) ?? 0));
  const rowsOf = new Map<RunRecord, ReadonlyMap<string, ResultRow>>();
  let wanted: ReadonlyMap<string, ResultRow> | null = null;
  for (const run of fewestFirst) {
    wanted = await answersOf(store, run, wanted);
    rowsOf.set(run, wanted);
  }
  const documents = [...(wanted?.keys() ?? [])]
    .map((name) => runs.map((run) => rowsOf.get(run)?.get(name) as ResultRow))
    .map((rows) => documentOf(rows))
    .sort((one, other) => one.line - other.line);
  return { runs: runs.map((run, index) => comparedRun(run, index, documents)), documents };
}

/** @param wanted by the names of these; null: all of the run */
async function answersOf(
  store: Store,
  run: RunRecord,
  wanted: ReadonlyMap<string, ResultRow> | null,
): Promise<ReadonlyMap<string, ResultRow>> {
  const rows = new Map<string, ResultRow>();
  const occurrences = new Map<string, number>();
  for await (const page of storedResults(store, run.id, 'completed')) {
    for (const row of page) {
      const occurrence = occurrences.get(row.key) ?? 0;
      occurrences.set(row.key, occurrence + 1);
      const name = JSON.stringify([row.key, occurrence]);
      if (wanted === null || wanted.has(name)) rows.set(name, row);
    }
  }
  return rows;
}

function documentOf(rows: readonly ResultRow[]): ComparedDocument {
  const { key, line } = rows[0] as ResultRow;
  const answers = rows.map((row) => ({ text: answerText(row), row }));
  return { key, line, agrees: new Set(answers.map(({ text }) => text)).size === 1, answers };
}

function answerText({ result }: ResultRow): string {
  const output: unknown = JSON.parse(result?.outputJson ?? 'null');
  return typeof output === 'string' ? output.trim() : JSON.stringify(output);
}

function comparedRun(run: RunRecord, index: number, documents: readonly ComparedDocument[]): ComparedRun {
  const rows = documents.map(({ answers }) => (answers[index] as ComparedAnswer).row);
  const sum = (figure: (row: ResultRow) => number | null | undefined): number =>
    rows.reduce((total, row) => total + (figure(row) ?? 0), 0);
  const latencies = rows.flatMap(({ latencyMs }) => (latencyMs === null ? [] : [latencyMs]));
  latencies.sort((one, other) => one - other);
  const isPriced = !run.simulated && rows.every(({ costMicroUsd }) => costMicroUsd !== null);
  return {
    run,
    models: [...new Set(rows.flatMap(({ result }) => (result === null ? [] : [result.model])))].sort(),
    agreeing: documents.filter(({ answers }) => answers[index]?.text === answers[0]?.text).length,
    inputTokens: sum(({ usage }) => usage?.inputTokens),
    outputTokens: sum(({ usage }) => usage?.outputTokens),
    costMicroUsd: isPriced ? sum(({ costMicroUsd }) => costMicroUsd) : null,
    medianLatencyMs: latencies[Math.floor((latencies.length - 1) / 2)] ?? null,
  };
}
