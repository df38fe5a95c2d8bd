/**
 * Answers to requests that a document asks no more, because it or the run's settings were edited. They are kept with
 * the hash of the request until the run is deleted, and go back into `results` where the document asks the same of the
 * same servers again. The ledger keeps their calls either way, so nothing is counted or paid for twice.
 */
import type Database from 'better-sqlite3';
import { ANSWER } from '../sql/parts.js';

/** Answers of which nobody can tell who gave them; nobody asks under this name. */
const UNKNOWN = '';

type Key = [taskId: number, requestHash: string, answeredBy: string];
const BY_KEY = '(task_id, earlier_answers.request_hash, answered_by) = (?, ?, ?)';

export class EarlierAnswers {
  readonly #has;
  readonly #keep;
  readonly #restoreResult;
  readonly #complete;
  readonly #delete;

  constructor(database: Database.Database) {
    this.#has = database
      .prepare<Key, number>(`SELECT EXISTS (SELECT 1 FROM earlier_answers WHERE ${BY_KEY})`)
      .pluck();
    this.#keep = database.prepare<[string, number]>(
      `INSERT OR REPLACE INTO earlier_answers (task_id, request_hash, answered_by, attempts, shared_from, ${ANSWER})
       SELECT tasks.id, request_hash, ?, attempts, shared_from, ${ANSWER}
       FROM tasks JOIN results ON task_id = tasks.id WHERE tasks.id = ? AND state = 'completed'`,
    );
    this.#restoreResult = database.prepare<Key>(
      `INSERT OR REPLACE INTO results (task_id, ${ANSWER}) SELECT task_id, ${ANSWER} FROM earlier_answers WHERE ${BY_KEY}`,
    );
    this.#complete = database.prepare<Key>(
      `UPDATE tasks SET state = 'completed', attempts = earlier_answers.attempts, shared_from = earlier_answers.shared_from
       FROM earlier_answers WHERE tasks.id = task_id AND ${BY_KEY}`,
    );
    this.#delete = database.prepare<Key>(`DELETE FROM earlier_answers WHERE ${BY_KEY}`);
  }

  has(taskId: number, requestHash: string, answeredBy: string): boolean {
    return this.#has.get(taskId, requestHash, answeredBy) === 1;
  }

  /** Copies the answer that a completed task has, before it is replaced. @param answeredBy null: nobody can tell */
  keep(taskId: number, answeredBy: string | null): void {
    this.#keep.run(answeredBy ?? UNKNOWN, taskId);
  }

  /** Completes a task that is ready with an answer that `has` has found. */
  take(taskId: number, requestHash: string, answeredBy: string): void {
    const key: Key = [taskId, requestHash, answeredBy];
    this.#restoreResult.run(...key);
    this.#complete.run(...key);
    this.#delete.run(...key);
  }
}
