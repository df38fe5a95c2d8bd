/** Runs: one input and one set of settings. Called inside a transaction of the store. */
import type Database from 'better-sqlite3';
import type { NewRun, RunChange, RunObservation, RunRecord } from '../../core/run.js';
import { type RunRow, toRun } from '../rows.js';
import { runMissing, runNameTaken } from '../run-errors.js';
import { storableInteger, storableIntegerOrNull, storableText, storableTextOrNull } from '../storable.js';
import { type StorePlace, toStoredPath } from '../stored-path.js';
import { isUniqueViolation } from './errors.js';

const COLUMNS = `id, name, status, input_path, simulated, created_at_ms, stopped_at_ms, halt_reason,
  output_paths_json, settings_json,
  (SELECT json_group_array(json_array(kind, subject, value_json)) FROM run_observations WHERE run_id = runs.id)
    AS observations_json`;

export class Runs {
  readonly #place: StorePlace;
  readonly #insert;
  readonly #insertTotals;
  readonly #select;
  readonly #selectAll;
  readonly #update;
  readonly #note;
  readonly #unnote;
  readonly #reopen;
  readonly #markDeleted;
  readonly #unserve;

  constructor(database: Database.Database, place: StorePlace) {
    this.#place = place;
    this.#insert = database.prepare<[string, string, number, string, number]>(
      `INSERT INTO runs (name, status, input_path, simulated, settings_json, created_at_ms)
       VALUES (?, 'importing', ?, ?, ?, ?)`,
    );
    this.#insertTotals = database.prepare<[number]>('INSERT INTO run_totals (run_id) VALUES (?)');
    this.#select = database.prepare<[number], RunRow>(
      `SELECT ${COLUMNS} FROM runs WHERE id = ? AND deleted = 0`,
    );
    this.#selectAll = database.prepare<[], RunRow>(
      `SELECT ${COLUMNS} FROM runs WHERE deleted = 0 ORDER BY id DESC`,
    );
    this.#update = database.prepare<[string, string, number | null, string | null, string, number]>(
      `UPDATE runs SET status = iif(status = 'cancelled', status, ?), settings_json = ?, stopped_at_ms = ?, halt_reason = ?, output_paths_json = ?
       WHERE id = ?`,
    );
    this.#note = database.prepare<[number, string, string, string]>(
      'INSERT OR REPLACE INTO run_observations (run_id, kind, subject, value_json) VALUES (?, ?, ?, ?)',
    );
    this.#unnote = database.prepare<[number, string, string]>(
      'DELETE FROM run_observations WHERE (run_id, kind, subject) = (?, ?, ?)',
    );
    this.#reopen = database.prepare<[number]>(
      `UPDATE runs SET status = 'open' WHERE id = ? AND status = 'finished'`,
    );
    this.#markDeleted = database.prepare<[number]>('UPDATE runs SET deleted = 1 WHERE id = ?');
    this.#unserve = database.prepare<[number]>('DELETE FROM served_runs WHERE run_id = ?');
  }

  create(run: NewRun): RunRecord {
    try {
      const { lastInsertRowid } = this.#insert.run(
        storableText(run.name),
        storableText(toStoredPath(run.inputPath, this.#place)),
        run.simulated ? 1 : 0,
        JSON.stringify(run.settings),
        storableInteger(run.createdAtMs),
      );
      this.#insertTotals.run(Number(lastInsertRowid));
      return this.get(Number(lastInsertRowid));
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      throw runNameTaken(run.name);
    }
  }

  get(runId: number): RunRecord {
    const row = this.#select.get(runId);
    if (row === undefined) throw runMissing(runId);
    return toRun(row, this.#place.folder);
  }

  /** Newest first. */
  list(): RunRecord[] {
    return this.#selectAll.all().map((row) => toRun(row, this.#place.folder));
  }

  update(runId: number, change: RunChange): RunRecord {
    const run = { ...this.get(runId), ...change };
    this.#update.run(
      run.status,
      JSON.stringify(run.settings),
      storableIntegerOrNull(run.stoppedAtMs),
      storableTextOrNull(run.haltReason),
      JSON.stringify([
        ...run.outputPaths.map((path) => toStoredPath(path, this.#place)),
        ...run.writtenFiles.map((file) => ({ ...file, path: toStoredPath(file.path, this.#place) })),
      ]),
      runId,
    );
    return this.get(runId);
  }

  note(runId: number, observations: readonly RunObservation[]): void {
    this.get(runId);
    for (const { kind, subject, value } of observations) {
      const about = storableText(subject);
      if (value === null) this.#unnote.run(runId, kind, about);
      else this.#note.run(runId, kind, about, storableText(JSON.stringify(value)));
    }
  }

  /** A finished run has open tasks again. */
  reopen(runId: number): void {
    this.#reopen.run(runId);
  }

  cancel(runId: number, nowMs: number): void {
    this.update(runId, { status: 'cancelled', stoppedAtMs: nowMs, haltReason: null });
  }

  exists(runId: number): boolean {
    return this.#select.get(runId) !== undefined;
  }

  /** Marks a run as deleted: from here on nothing finds it, and its idempotency key is free as its name is. */
  delete(runId: number): void {
    this.get(runId);
    this.#markDeleted.run(runId);
    this.#unserve.run(runId);
  }
}
