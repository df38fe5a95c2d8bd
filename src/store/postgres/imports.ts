/**
 * Documents become tasks. A run has a generation number that each re-import raises, and a task the number of
 * the import that last saw it: tasks left behind are gone. So a crash in the middle needs no repair; the next
 * re-import raises the number again and starts over.
 */
import { createHash } from 'node:crypto';
import type { NewTask, TaskState } from '../../core/task.js';
import { runMissing } from '../run-errors.js';
import { UNOWNED, UNPAIRED } from '../sql/parts.js';
import { all, one, run, type Steps } from '../sql/steps.js';
import { storableInteger, storableReal, storableText } from '../storable.js';
import type { ImportMatch, ImportTally, ReimportOptions } from '../store.js';
import { keepAnswers, takeAnswers } from './earlier-answers.js';
import { type ColumnRow, rowsOf, toColumns } from './wire.js';

type KeyOfDocument = Pick<NewTask, 'key' | 'occurrence'>;

interface StoredTask {
  key_hash: string;
  id: number;
  state: TaskState;
  request_hash: string;
  /** Hashes of requests that have an earlier answer. */
  answered: readonly string[] | null;
}

type ExistingTask = Pick<StoredTask, 'id' | 'state' | 'request_hash'> & { readonly answered_before: boolean };

const KEY_HASH = { key_hash: 'text' } as const;
const DOCUMENT = `key text, occurrence integer, request_hash text, line bigint, priority double precision,
  id_is_number smallint, metadata_json text, body text`;
const NEW_DOCUMENT = {
  task_id: 'bigint',
  key: 'text',
  occurrence: 'bigint',
  request_hash: 'text',
  line: 'bigint',
  priority: 'double precision',
  id_is_number: 'bigint',
  metadata_json: 'text',
  body: 'text',
} as const;

function documentOf(task: NewTask): ColumnRow<typeof NEW_DOCUMENT> {
  const { key, occurrence, body, metadataJson } = task;
  return {
    ...{ key, occurrence, body },
    request_hash: task.requestHash,
    line: storableInteger(task.line),
    priority: storableReal(task.priority),
    id_is_number: task.idIsNumber ? 1 : 0,
    metadata_json: metadataJson,
  };
}

/** Long keys do not fit an index; nobody finds two that share 128 bits of SHA-256. */
export function keyHash({ key, occurrence }: KeyOfDocument): string {
  return createHash('sha256')
    .update(`${occurrence} ${storableText(key)}`)
    .digest('hex')
    .slice(0, 32);
}

export function* addTasks(
  runId: number,
  tasks: readonly NewTask[],
): Steps<{ added: number; duplicates: number }> {
  const generation = yield* generationOf(runId);
  if (tasks.length === 0) return { added: 0, duplicates: 0 };
  const hashes = tasks.map(keyHash);
  const fresh = yield* all<{ key_hash: string; task_id: number }>(
    `INSERT INTO task_keys (run_id, key_hash, task_id)
     SELECT $1, key_hash::uuid, nextval('tasks_id_seq') FROM ${rowsOf(KEY_HASH, 'document', 2)}
     ON CONFLICT DO NOTHING RETURNING replace(key_hash::text, '-', '') AS key_hash, task_id`,
    runId,
    ...toColumns(
      KEY_HASH,
      hashes.map((key_hash) => ({ key_hash })),
    ),
  );
  // Of documents that share a key the first has the number.
  const ids = new Map(fresh.map(({ key_hash, task_id }) => [key_hash, task_id]));
  const added = tasks.flatMap((task, ordinal) => {
    const hash = hashes[ordinal] ?? '';
    const task_id = ids.get(hash);
    ids.delete(hash);
    return task_id === undefined ? [] : [{ task_id, ...documentOf(task) }];
  });
  yield* run(
    `WITH document AS MATERIALIZED (SELECT * FROM ${rowsOf(NEW_DOCUMENT, 'document', 3)}),
     stored AS (
       INSERT INTO documents (task_id, id_is_number, metadata_json, body)
       SELECT task_id, id_is_number, metadata_json, body FROM document)
     INSERT INTO tasks (id, run_id, line, priority, import_generation, occurrence, state, key, request_hash)
     SELECT task_id, $1, line, priority, $2, occurrence, 'ready', key, request_hash FROM document`,
    runId,
    generation,
    ...toColumns(NEW_DOCUMENT, added),
  );
  return { added: added.length, duplicates: tasks.length - added.length };
}

export function* matchTasks(
  runId: number,
  documents: readonly Pick<NewTask, 'key' | 'occurrence' | 'requestHash'>[],
  answeredBy: string,
): Steps<ImportMatch[]> {
  const existing = yield* existingTasks(runId, documents, answeredBy);
  return documents.map((document, ordinal) => {
    const task = existing.get(ordinal);
    return task === undefined ? 'new' : compare(task, document.requestHash);
  });
}

/** By the place of the document. */
function* existingTasks(
  runId: number,
  documents: readonly Pick<NewTask, 'key' | 'occurrence' | 'requestHash'>[],
  answeredBy: string,
): Steps<ReadonlyMap<number, ExistingTask>> {
  const hashes = documents.map(keyHash);
  const rows = yield* all<StoredTask>(
    `SELECT replace(key_hash::text, '-', '') AS key_hash, tasks.id, state, tasks.request_hash,
       (SELECT json_agg(request_hash) FROM earlier_answers WHERE task_id = tasks.id AND answered_by = $2) AS answered
     FROM task_keys JOIN tasks ON tasks.id = task_keys.task_id
     WHERE task_keys.run_id = $1 AND task_keys.key_hash = ANY ($3::text[]::uuid[])`,
    runId,
    answeredBy,
    ...toColumns(
      KEY_HASH,
      hashes.map((key_hash) => ({ key_hash })),
    ),
  );
  const tasks = new Map(rows.map((row) => [row.key_hash, row]));
  return new Map(
    documents.flatMap(({ requestHash }, ordinal) => {
      const task = tasks.get(hashes[ordinal] ?? '');
      if (task === undefined) return [];
      const answered_before = task.answered?.includes(storableText(requestHash)) ?? false;
      return [[ordinal, { ...task, answered_before }]];
    }),
  );
}

function compare(
  { state, request_hash, answered_before }: ExistingTask,
  requestHash: string,
): Exclude<ImportMatch, 'new'> {
  const isUnchanged = request_hash === storableText(requestHash);
  const isFinished = state === 'completed';
  if (isUnchanged && isFinished) return 'unchanged';
  if (answered_before) return 'answered_before';
  if (isUnchanged) return 'unchanged';
  return isFinished ? 'changed_finished' : 'changed_open';
}

export function* beginReimport(runId: number): Steps<void> {
  const changed = yield* run(
    `UPDATE runs SET status = 'importing', import_generation = import_generation + 1 WHERE id = $1 AND deleted = 0`,
    runId,
  );
  if (changed === 0) throw runMissing(runId);
}

export function* reimportTasks(
  runId: number,
  tasks: readonly NewTask[],
  { keepFinished, answerers }: ReimportOptions,
): Steps<ImportTally> {
  const generation = yield* generationOf(runId);
  const existing = yield* existingTasks(runId, tasks, answerers.fromNowOn);
  const added: NewTask[] = [];
  const unchanged: object[] = [];
  const kept: object[] = [];
  const replaced: object[] = [];
  const answered: { task_id: number; request_hash: string }[] = [];
  for (const [ordinal, task] of tasks.entries()) {
    const found = existing.get(ordinal);
    if (found === undefined) {
      added.push(task);
      continue;
    }
    const match = compare(found, task.requestHash);
    const change = { task_id: found.id, ...documentOf(task) };
    if (match === 'unchanged') unchanged.push(change);
    // The hash and the document stay those of the answer.
    else if (match === 'changed_finished' && keepFinished) kept.push(change);
    else {
      replaced.push(change);
      if (match === 'answered_before') answered.push({ task_id: found.id, request_hash: task.requestHash });
    }
  }
  yield* moveTasks(generation, [...unchanged, ...kept]);
  yield* replaceTasks(generation, replaced, answerers.soFar);
  // Fields that the request does not use may have changed all the same.
  yield* setDocuments([...unchanged, ...replaced]);
  yield* takeAnswers(answered, answerers.fromNowOn);
  return {
    added: (yield* addTasks(runId, added)).added,
    unchanged: unchanged.length,
    kept: kept.length,
    replaced: replaced.length - answered.length,
    answeredBefore: answered.length,
  };
}

function* moveTasks(generation: number, changes: readonly object[]): Steps<void> {
  if (changes.length === 0) return;
  yield* run(
    `UPDATE tasks SET import_generation = $1, line = moved.line, priority = moved.priority, gone = 0
     FROM json_to_recordset($2) AS moved (task_id bigint, line bigint, priority double precision)
     WHERE id = moved.task_id`,
    generation,
    changes,
  );
}

/** They are ready to be asked anew; the answers they had are kept aside. */
function* replaceTasks(
  generation: number,
  changes: readonly object[],
  answeredBy: string | null,
): Steps<void> {
  if (changes.length === 0) return;
  yield* keepAnswers(changes, answeredBy);
  yield* run(
    `DELETE FROM results WHERE task_id IN (
       SELECT task_id FROM json_to_recordset($1) AS replaced (task_id bigint))`,
    changes,
  );
  yield* run(
    `UPDATE tasks SET import_generation = $1, line = replaced.line, priority = replaced.priority,
       request_hash = replaced.request_hash, gone = 0,
       state = 'ready', attempts = 0, crash_count = 0, lone_crash_count = 0, not_before_ms = NULL,
       throttled_since_ms = NULL, failure_kind = NULL, ${UNOWNED}, ${UNPAIRED}
     FROM json_to_recordset($2) AS replaced (task_id bigint, ${DOCUMENT}) WHERE id = replaced.task_id`,
    generation,
    changes,
  );
}

function* setDocuments(changes: readonly object[]): Steps<void> {
  if (changes.length === 0) return;
  yield* run(
    `UPDATE documents SET metadata_json = changed.metadata_json, id_is_number = changed.id_is_number, body = changed.body
     FROM json_to_recordset($1) AS changed (task_id bigint, ${DOCUMENT})
     WHERE documents.task_id = changed.task_id AND (documents.metadata_json, documents.id_is_number, documents.body)
       IS DISTINCT FROM (changed.metadata_json, changed.id_is_number, changed.body)`,
    changes,
  );
}

export function* finishReimport(runId: number): Steps<{ gone: number }> {
  const generation = yield* generationOf(runId);
  const gone = yield* run(
    'UPDATE tasks SET gone = 1 WHERE run_id = $1 AND import_generation <> $2 AND gone = 0',
    runId,
    generation,
  );
  yield* run(`UPDATE runs SET status = 'open' WHERE id = $1`, runId);
  return { gone };
}

/** Locks the run against those that would delete it or import it anew. @throws LlmBatchError RUN_MISSING */
function* generationOf(runId: number): Steps<number> {
  const run = yield* one<{ import_generation: number }>(
    'SELECT import_generation FROM runs WHERE id = $1 AND deleted = 0 FOR SHARE',
    runId,
  );
  if (run === undefined) throw runMissing(runId);
  return run.import_generation;
}
