/** Documents of an import, and their tasks by key. */
import type Database from 'better-sqlite3';
import type { NewTask } from '../../core/task.js';
import type { ChangedDocument, DocumentStore, ExistingTask, InputDocument } from '../sql/reimports.js';
import { already, type Steps } from '../sql/steps.js';
import { storableInteger, storableReal, storableText, storableTextOrNull } from '../storable.js';
import { hashKey, type KeyIndex } from './key-index.js';

/** One statement for many rows saves a quarter of an import's processor time. */
const ROWS_PER_INSERT = 25;

const TASK_COLUMNS = 'id, run_id, line, priority, import_generation, occurrence, key, request_hash, state';
const TASK_VALUES = `(?, ?, ?, ?, ?, ?, ?, ?, 'ready')`;
const DOCUMENT_COLUMNS = 'task_id, metadata_json, id_is_number, body';
const DOCUMENT_VALUES = '(?, ?, ?, ?)';

type Bindings = (string | number | null)[];

export class Imports implements DocumentStore {
  readonly #keys: KeyIndex;
  readonly #insertTasks: readonly [one: Database.Statement<Bindings>, many: Database.Statement<Bindings>];
  readonly #insertDocuments: readonly [one: Database.Statement<Bindings>, many: Database.Statement<Bindings>];
  readonly #lastTaskId;
  readonly #count;
  readonly #find;
  readonly #updateDocument;

  constructor(database: Database.Database, keys: KeyIndex) {
    this.#keys = keys;
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
    this.#lastTaskId = database.prepare<[], number>('SELECT coalesce(max(id), 0) FROM tasks').pluck();
    this.#count = database.prepare<[number, number]>(
      `INSERT INTO task_counts (run_id, state, kind, tasks) VALUES (?, 'ready', '', ?)
       ON CONFLICT DO UPDATE SET tasks = tasks + excluded.tasks`,
    );
    this.#find = database.prepare<[number], ExistingTask>(
      'SELECT id, state, request_hash, gone, line, priority FROM tasks WHERE id = ?',
    );
    this.#updateDocument = database.prepare<
      [string | null, number, string, number, string | null, number, string]
    >(
      `UPDATE documents SET metadata_json = ?, id_is_number = ?, body = ?
       WHERE task_id = ? AND (metadata_json IS NOT ? OR id_is_number <> ? OR body <> ?)`,
    );
  }

  add(runId: number, generation: number, tasks: readonly NewTask[]): Steps<number> {
    return already(this.#add(runId, generation, tasks));
  }

  #add(runId: number, generation: number, tasks: readonly NewTask[]): number {
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
    return added;
  }

  find(runId: number, documents: readonly InputDocument[]): Steps<readonly (ExistingTask | undefined)[]> {
    this.#keys.open(runId);
    return already(
      documents.map(({ key, occurrence }) => {
        const stored = storableText(key);
        const taskId = this.#keys.find(hashKey(stored, occurrence), stored, occurrence);
        return taskId === undefined ? undefined : this.#find.get(taskId);
      }),
    );
  }

  setDocuments(changed: readonly ChangedDocument[]): Steps<void> {
    for (const { taskId, task } of changed) {
      const values = documentValues(task);
      this.#updateDocument.run(...values, taskId, ...values);
    }
    return already(undefined);
  }

  settle(runId: number): Steps<void> {
    return already(this.#keys.settle(runId));
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
}

function documentValues(task: NewTask): [metadataJson: string | null, idIsNumber: number, body: string] {
  return [storableTextOrNull(task.metadataJson), task.idIsNumber ? 1 : 0, storableText(task.body)];
}
