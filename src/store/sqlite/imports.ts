/**
 * Documents become tasks. A run has a generation number that each re-import raises, and a task the number of
 * the import that last saw it: tasks left behind are gone. So a crash in the middle needs no repair; the next
 * re-import raises the number again and starts over.
 */
import type Database from 'better-sqlite3';
import type { NewTask, TaskState } from '../../core/task.js';
import { runMissing } from '../run-errors.js';
import { UNOWNED, UNPAIRED } from '../sql/parts.js';
import { storableInteger, storableReal, storableText, storableTextOrNull } from '../storable.js';
import type { ImportMatch, ImportTally, ReimportOptions } from '../store.js';
import { EarlierAnswers } from './earlier-answers.js';
import { hashKey, type KeyIndex } from './key-index.js';

interface ExistingTask {
  id: number;
  state: TaskState;
  request_hash: string;
  gone: number;
  line: number;
  priority: number;
}

/** One statement for many rows saves a quarter of an import's processor time. */
const ROWS_PER_INSERT = 25;

const TASK_COLUMNS = 'id, run_id, line, priority, import_generation, occurrence, key, request_hash, state';
const TASK_VALUES = `(?, ?, ?, ?, ?, ?, ?, ?, 'ready')`;
const DOCUMENT_COLUMNS = 'task_id, metadata_json, id_is_number, body';
const DOCUMENT_VALUES = '(?, ?, ?, ?)';

type Bindings = (string | number | null)[];

export class Imports {
  readonly #keys: KeyIndex;
  readonly #earlier: EarlierAnswers;
  readonly #insertTasks: readonly [one: Database.Statement<Bindings>, many: Database.Statement<Bindings>];
  readonly #insertDocuments: readonly [one: Database.Statement<Bindings>, many: Database.Statement<Bindings>];
  readonly #generation;
  readonly #lastTaskId;
  readonly #count;
  readonly #find;
  readonly #begin;
  readonly #touch;
  readonly #move;
  readonly #replace;
  readonly #updateDocument;
  readonly #deleteResult;
  readonly #markGone;
  readonly #finish;

  constructor(database: Database.Database, keys: KeyIndex) {
    this.#keys = keys;
    this.#earlier = new EarlierAnswers(database);
    const insert = (table: string, columns: string, values: string, rows: number) =>
      database.prepare<Bindings>(
        `INSERT INTO ${table} (${columns}) VALUES ${Array(rows).fill(values).join(', ')}`,
      );
    this.#insertTasks = [
      insert('tasks', TASK_COLUMNS, TASK_VALUES, 1),
      insert('tasks', TASK_COLUMNS, TASK_VALUES, ROWS_PER_INSERT),
    ];
    this.#insertDocuments = [
      insert('documents', DOCUMENT_COLUMNS, DOCUMENT_VALUES, 1),
      insert('documents', DOCUMENT_COLUMNS, DOCUMENT_VALUES, ROWS_PER_INSERT),
    ];
    this.#generation = database
      .prepare<[number], number>('SELECT import_generation FROM runs WHERE id = ? AND deleted = 0')
      .pluck();
    this.#lastTaskId = database.prepare<[], number>('SELECT coalesce(max(id), 0) FROM tasks').pluck();
    this.#count = database.prepare<[number, number]>(
      `INSERT INTO task_counts (run_id, state, kind, tasks) VALUES (?, 'ready', '', ?)
       ON CONFLICT DO UPDATE SET tasks = tasks + excluded.tasks`,
    );
    this.#find = database.prepare<[number], ExistingTask>(
      'SELECT id, state, request_hash, gone, line, priority FROM tasks WHERE id = ?',
    );
    this.#begin = database.prepare<[number]>(
      `UPDATE runs SET status = 'importing', import_generation = import_generation + 1 WHERE id = ?`,
    );
    this.#touch = database.prepare<[number, number]>('UPDATE tasks SET import_generation = ? WHERE id = ?');
    this.#move = database.prepare<[number, number, number, number]>(
      'UPDATE tasks SET import_generation = ?, line = ?, priority = ?, gone = 0 WHERE id = ?',
    );
    this.#replace = database.prepare<[number, number, number, string, number]>(
      `UPDATE tasks SET import_generation = ?, line = ?, priority = ?, request_hash = ?, gone = 0,
         state = 'ready', attempts = 0, crash_count = 0, lone_crash_count = 0, not_before_ms = NULL,
         throttled_since_ms = NULL, failure_kind = NULL, ${UNOWNED}, ${UNPAIRED}
       WHERE id = ?`,
    );
    this.#updateDocument = database.prepare<
      [string | null, number, string, number, string | null, number, string]
    >(
      `UPDATE documents SET metadata_json = ?, id_is_number = ?, body = ?
       WHERE task_id = ? AND (metadata_json IS NOT ? OR id_is_number <> ? OR body <> ?)`,
    );
    this.#deleteResult = database.prepare<[number]>('DELETE FROM results WHERE task_id = ?');
    // The whole table in its own order: by an index it would be a million scattered reads.
    this.#markGone = database.prepare<[number, number]>(
      'UPDATE tasks NOT INDEXED SET gone = 1 WHERE run_id = ? AND import_generation <> ? AND gone = 0',
    );
    this.#finish = database.prepare<[number]>(`UPDATE runs SET status = 'open' WHERE id = ?`);
  }

  add(runId: number, tasks: readonly NewTask[]): { added: number; duplicates: number } {
    const generation = this.#generationOf(runId);
    this.#keys.open(runId);
    let lastId = this.#lastTaskId.get() ?? 0;
    let added = 0;
    let taskRows: Bindings = [];
    let documentRows: Bindings = [];
    let waiting = 0;
    const insertWaiting = (): void => {
      this.#insertRows(waiting, taskRows, documentRows);
      taskRows = [];
      documentRows = [];
      waiting = 0;
    };
    for (const task of tasks) {
      const key = storableText(task.key);
      const hash = hashKey(key, task.occurrence);
      if (waiting > 0 && this.#keys.tailHas(hash)) insertWaiting();
      if (this.#keys.find(hash, key, task.occurrence) !== undefined) continue;
      lastId += 1;
      this.#keys.add(hash, lastId);
      taskRows.push(
        lastId,
        runId,
        storableInteger(task.line),
        storableReal(task.priority),
        generation,
        task.occurrence,
        key,
        storableText(task.requestHash),
      );
      documentRows.push(lastId, ...documentValues(task));
      added += 1;
      waiting += 1;
      if (waiting === ROWS_PER_INSERT) insertWaiting();
    }
    insertWaiting();
    if (added > 0) this.#count.run(runId, added);
    return { added, duplicates: tasks.length - added };
  }

  match(
    runId: number,
    documents: readonly Pick<NewTask, 'key' | 'occurrence' | 'requestHash'>[],
    answeredBy: string,
  ): ImportMatch[] {
    this.#keys.open(runId);
    return documents.map((document) => {
      const existing = this.#existing(document);
      return existing === undefined ? 'new' : this.#compare(existing, document.requestHash, answeredBy);
    });
  }

  #compare(existing: ExistingTask, requestHash: string, answeredBy: string): Exclude<ImportMatch, 'new'> {
    const hash = storableText(requestHash);
    const isUnchanged = existing.request_hash === hash;
    const isFinished = existing.state === 'completed';
    if (isUnchanged && isFinished) return 'unchanged';
    if (this.#earlier.has(existing.id, hash, answeredBy)) return 'answered_before';
    if (isUnchanged) return 'unchanged';
    return isFinished ? 'changed_finished' : 'changed_open';
  }

  begin(runId: number): void {
    this.#generationOf(runId);
    this.#begin.run(runId);
  }

  reimport(
    runId: number,
    tasks: readonly NewTask[],
    { keepFinished, answerers }: ReimportOptions,
  ): ImportTally {
    const generation = this.#generationOf(runId);
    this.#keys.open(runId);
    const added: NewTask[] = [];
    const tally = { unchanged: 0, replaced: 0, kept: 0, answeredBefore: 0 };
    for (const task of tasks) {
      const existing = this.#existing(task);
      if (existing === undefined) {
        added.push(task);
        continue;
      }
      const match = this.#compare(existing, task.requestHash, answerers.fromNowOn);
      if (match === 'unchanged') {
        this.#moveTo(existing, generation, task);
        this.#setDocument(existing.id, task);
        tally.unchanged += 1;
      } else if (match === 'changed_finished' && keepFinished) {
        // The hash and the document stay those of the answer.
        this.#moveTo(existing, generation, task);
        tally.kept += 1;
      } else {
        this.#replaceBy(task, existing, generation, answerers.soFar);
        if (match === 'answered_before') {
          this.#earlier.take(existing.id, storableText(task.requestHash), answerers.fromNowOn);
          tally.answeredBefore += 1;
        } else {
          tally.replaced += 1;
        }
      }
    }
    return { added: this.add(runId, added).added, ...tally };
  }

  /** The task is ready to be asked anew; the answer it had is kept aside. */
  #replaceBy(task: NewTask, existing: ExistingTask, generation: number, answeredBy: string | null): void {
    this.#earlier.keep(existing.id, answeredBy);
    this.#deleteResult.run(existing.id);
    this.#setDocument(existing.id, task);
    this.#replace.run(
      generation,
      storableInteger(task.line),
      storableReal(task.priority),
      storableText(task.requestHash),
      existing.id,
    );
  }

  finish(runId: number): { gone: number } {
    const { changes } = this.#markGone.run(runId, this.#generationOf(runId));
    this.#keys.settle(runId);
    this.#finish.run(runId);
    return { gone: changes };
  }

  #generationOf(runId: number): number {
    const generation = this.#generation.get(runId);
    if (generation === undefined) throw runMissing(runId);
    return generation;
  }

  #existing(document: Pick<NewTask, 'key' | 'occurrence'>): ExistingTask | undefined {
    const key = storableText(document.key);
    const taskId = this.#keys.find(hashKey(key, document.occurrence), key, document.occurrence);
    return taskId === undefined ? undefined : this.#find.get(taskId);
  }

  #insertRows(rows: number, taskRows: Bindings, documentRows: Bindings): void {
    if (rows === ROWS_PER_INSERT) {
      this.#insertTasks[1].run(...taskRows);
      this.#insertDocuments[1].run(...documentRows);
      return;
    }
    const taskWidth = taskRows.length / rows;
    const documentWidth = documentRows.length / rows;
    for (let row = 0; row < rows; row += 1) {
      this.#insertTasks[0].run(...taskRows.slice(row * taskWidth, (row + 1) * taskWidth));
      this.#insertDocuments[0].run(...documentRows.slice(row * documentWidth, (row + 1) * documentWidth));
    }
  }

  /** Where nothing moved, the indexes over line and priority are left alone: half the work. */
  #moveTo(existing: ExistingTask, generation: number, task: NewTask): void {
    if (existing.line === task.line && existing.priority === task.priority && existing.gone === 0) {
      this.#touch.run(generation, existing.id);
    } else {
      this.#move.run(generation, storableInteger(task.line), storableReal(task.priority), existing.id);
    }
  }

  /** Fields that the request does not use may have changed all the same. */
  #setDocument(taskId: number, task: NewTask): void {
    const values = documentValues(task);
    this.#updateDocument.run(...values, taskId, ...values);
  }
}

function documentValues(task: NewTask): [metadataJson: string | null, idIsNumber: number, body: string] {
  return [storableTextOrNull(task.metadataJson), task.idIsNumber ? 1 : 0, storableText(task.body)];
}
