/** Runs: one input and one set of settings. Called inside a transaction of the store. */
import type Database from 'better-sqlite3';
import { EXIT_CODES, LlmBatchError, usageError } from '../../core/errors.js';
import type { NewRun, RunChange, RunRecord } from '../store.js';
import { isUniqueViolation } from './errors.js';
import { type RunRow, toRun } from './rows.js';
import { storableInteger, storableIntegerOrNull, storableText, storableTextOrNull } from './storable.js';

const COLUMNS = `id, name, status, input_path, simulated, created_at_ms, stopped_at_ms, halt_reason,
  output_paths_json, settings_json`;

/** Children first: foreign keys are checked at once. Totals and counts go with the run. */
const DELETIONS: readonly string[] = [
  'DELETE FROM results WHERE task_id IN (SELECT id FROM tasks WHERE run_id = ?)',
  'DELETE FROM documents WHERE task_id IN (SELECT id FROM tasks WHERE run_id = ?)',
  'DELETE FROM calls WHERE run_id = ?',
  'DELETE FROM task_keys WHERE run_id = ?',
  'DELETE FROM tasks WHERE run_id = ?',
  'DELETE FROM task_counts WHERE run_id = ?',
  'DELETE FROM latency_buckets WHERE run_id = ?',
  'DELETE FROM run_totals WHERE run_id = ?',
  'DELETE FROM runs WHERE id = ?',
];

export function runMissing(runId: number): LlmBatchError {
  return new LlmBatchError(`The store has no run with the number ${runId}.`, {
    code: 'RUN_MISSING',
    exitCode: EXIT_CODES.store,
    hint: 'It may have been deleted meanwhile; `llm-batch status` shows what is there.',
  });
}

export class Runs {
  readonly #database: Database.Database;
  readonly #insert;
  readonly #insertTotals;
  readonly #select;
  readonly #selectAll;
  readonly #update;
  readonly #reopen;

  constructor(database: Database.Database) {
    this.#database = database;
    this.#insert = database.prepare<[string, string, number, string, number]>(
      `INSERT INTO runs (name, status, input_path, simulated, settings_json, created_at_ms)
       VALUES (?, 'importing', ?, ?, ?, ?)`,
    );
    this.#insertTotals = database.prepare<[number]>('INSERT INTO run_totals (run_id) VALUES (?)');
    this.#select = database.prepare<[number], RunRow>(`SELECT ${COLUMNS} FROM runs WHERE id = ?`);
    this.#selectAll = database.prepare<[], RunRow>(`SELECT ${COLUMNS} FROM runs ORDER BY id DESC`);
    this.#update = database.prepare<[string, string, number | null, string | null, string, number]>(
      `UPDATE runs SET status = ?, settings_json = ?, stopped_at_ms = ?, halt_reason = ?, output_paths_json = ?
       WHERE id = ?`,
    );
    this.#reopen = database.prepare<[number]>(
      `UPDATE runs SET status = 'open' WHERE id = ? AND status = 'finished'`,
    );
  }

  create(run: NewRun): RunRecord {
    try {
      const { lastInsertRowid } = this.#insert.run(
        storableText(run.name),
        storableText(run.inputPath),
        run.simulated ? 1 : 0,
        JSON.stringify(run.settings),
        storableInteger(run.createdAtMs),
      );
      this.#insertTotals.run(Number(lastInsertRowid));
      return this.get(Number(lastInsertRowid));
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      throw usageError(
        'RUN_NAME_TAKEN',
        `The store already has a run called "${run.name}".`,
        'Choose another with --name, or go on with it: `llm-batch resume`.',
      );
    }
  }

  get(runId: number): RunRecord {
    const row = this.#select.get(runId);
    if (row === undefined) throw runMissing(runId);
    return toRun(row);
  }

  /** Newest first. */
  list(): RunRecord[] {
    return this.#selectAll.all().map(toRun);
  }

  update(runId: number, change: RunChange): RunRecord {
    const run = { ...this.get(runId), ...change };
    this.#update.run(
      run.status,
      JSON.stringify(run.settings),
      storableIntegerOrNull(run.stoppedAtMs),
      storableTextOrNull(run.haltReason),
      JSON.stringify(run.outputPaths),
      runId,
    );
    return this.get(runId);
  }

  /** A finished run has open tasks again. */
  reopen(runId: number): void {
    this.#reopen.run(runId);
  }

  delete(runId: number): void {
    this.get(runId);
    for (const sql of DELETIONS) this.#database.prepare<[number]>(sql).run(runId);
  }
}
