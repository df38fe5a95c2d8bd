/**
 * Documents become tasks, and tasks follow an edited input. A run has a generation number that each re-import raises, and
 * a task the number of the import that last saw it: tasks left behind are gone. So a crash in the middle needs no repair;
 * the next re-import raises the number again and starts over.
 */
import type { NewTask, TaskState } from '../../core/task.js';
import { runMissing } from '../run-errors.js';
import { storableInteger, storableReal, storableText } from '../storable.js';
import type { ImportMatch, ImportTally, ReimportOptions } from '../store.js';
import { keepAnswers, keptRequests, takeAnswers } from './earlier-answers.js';
import { ASKED_ANEW, idsIn, removeResults, UNOWNED } from './parts.js';
import { one, run, type Steps } from './steps.js';

export type InputDocument = Pick<NewTask, 'key' | 'occurrence' | 'requestHash'>;

export interface ExistingTask {
  readonly id: number;
  readonly state: TaskState;
  readonly request_hash: string;
  readonly gone: number;
  readonly line: number;
  readonly priority: number;
}

export interface ChangedDocument {
  readonly taskId: number;
  readonly task: NewTask;
}

/** How a backend finds tasks by their keys, and writes documents. */
export interface DocumentStore {
  /** In the order of the documents. */
  find(runId: number, documents: readonly InputDocument[]): Steps<readonly (ExistingTask | undefined)[]>;
  /** Those whose key the run does not have. @returns how many */
  add(runId: number, generation: number, tasks: readonly NewTask[]): Steps<number>;
  setDocuments(changed: readonly ChangedDocument[]): Steps<unknown>;
  /** No more documents come, as far as anybody knows. */
  settle(runId: number): Steps<unknown>;
}

export function* addTasks(
  documents: DocumentStore,
  runId: number,
  tasks: readonly NewTask[],
): Steps<{ added: number; duplicates: number }> {
  const added = yield* documents.add(runId, yield* generationOf(runId), tasks);
  return { added, duplicates: tasks.length - added };
}

export function* matchTasks(
  documents: DocumentStore,
  runId: number,
  input: readonly InputDocument[],
  answeredBy: string,
): Steps<ImportMatch[]> {
  return (yield* matched(documents, runId, input, answeredBy)).map(([match]) => match);
}

/** Documents as they compare with the tasks that the run has under their keys, in their order. */
function* matched<Document extends InputDocument>(
  documents: DocumentStore,
  runId: number,
  input: readonly Document[],
  answeredBy: string,
): Steps<(readonly [match: ImportMatch, document: Document, existing: ExistingTask | undefined])[]> {
  const existing = yield* documents.find(runId, input);
  const hashes = input.map(({ requestHash }) => storableText(requestHash));
  const isSettled = (task: ExistingTask, ordinal: number): boolean =>
    task.state === 'completed' && task.request_hash === hashes[ordinal];
  const open = existing.flatMap((task, ordinal) =>
    task === undefined || isSettled(task, ordinal) ? [] : [task.id],
  );
  const kept = open.length === 0 ? [] : yield* keptRequests(open, answeredBy);
  const answered = new Set(kept.map(({ task_id, request_hash }) => `${task_id} ${request_hash}`));
  return input.map((document, ordinal) => {
    const task = existing[ordinal];
    if (task === undefined) return ['new', document, task];
    if (isSettled(task, ordinal)) return ['unchanged', document, task];
    if (answered.has(`${task.id} ${hashes[ordinal]}`)) return ['answered_before', document, task];
    if (task.request_hash === hashes[ordinal]) return ['unchanged', document, task];
    return [task.state === 'completed' ? 'changed_finished' : 'changed_open', document, task];
  });
}

export function* beginReimport(runId: number): Steps<void> {
  const changed = yield* run(
    `UPDATE runs SET status = 'importing', import_generation = import_generation + 1 WHERE id = $1 AND deleted = 0`,
    runId,
  );
  if (changed === 0) throw runMissing(runId);
}

export function* reimportTasks(
  documents: DocumentStore,
  runId: number,
  tasks: readonly NewTask[],
  { keepFinished, answerers }: ReimportOptions,
): Steps<ImportTally> {
  const generation = yield* generationOf(runId);
  const added: NewTask[] = [];
  const moved: Move[] = [];
  const unchanged: ChangedDocument[] = [];
  const replaced: ChangedDocument[] = [];
  const answered: number[] = [];
  for (const [match, task, existing] of yield* matched(documents, runId, tasks, answerers.fromNowOn)) {
    if (existing === undefined) added.push(task);
    else if (match === 'unchanged' || (match === 'changed_finished' && keepFinished)) {
      moved.push({ existing, task });
      // The hash and the document of one that is kept stay those of the answer.
      if (match === 'unchanged') unchanged.push({ taskId: existing.id, task });
    } else {
      replaced.push({ taskId: existing.id, task });
      if (match === 'answered_before') answered.push(existing.id);
    }
  }
  yield* moveTasks(generation, moved);
  yield* replaceTasks(generation, replaced, answerers.soFar);
  // Fields that the request does not use may have changed all the same.
  yield* documents.setDocuments([...unchanged, ...replaced]);
  if (answered.length > 0) yield* takeAnswers(answered, answerers.fromNowOn);
  return {
    added: yield* documents.add(runId, generation, added),
    unchanged: unchanged.length,
    kept: moved.length - unchanged.length,
    replaced: replaced.length - answered.length,
    answeredBefore: answered.length,
  };
}

interface Move {
  readonly existing: ExistingTask;
  readonly task: NewTask;
}

function placeOf({ line, priority }: NewTask): { readonly line: number; readonly priority: number } {
  return { line: storableInteger(line), priority: storableReal(priority) };
}

/** Where nothing moved, the indexes over line and priority are left alone: half the work. */
function* moveTasks(generation: number, moves: readonly Move[]): Steps<void> {
  const isMoved = ({ existing, task }: Move): boolean =>
    existing.line !== task.line || existing.priority !== task.priority || existing.gone !== 0;
  const still = moves.filter((move) => !isMoved(move));
  if (still.length > 0) {
    yield* run(
      `UPDATE tasks SET import_generation = $2 WHERE id IN ${idsIn('$1')}`,
      still.map(({ existing }) => existing.id),
      generation,
    );
  }
  const moved = moves.filter(isMoved);
  if (moved.length === 0) return;
  yield* run(
    `UPDATE tasks SET import_generation = $1, line = moved.line, priority = moved.priority, gone = 0
     FROM json_to_recordset($2) AS moved (task_id bigint, line bigint, priority double precision)
     WHERE id = moved.task_id`,
    generation,
    moved.map(({ existing, task }) => ({ task_id: existing.id, ...placeOf(task) })),
  );
}

/** They are ready to be asked anew; the answers they had are kept aside. */
function* replaceTasks(
  generation: number,
  replaced: readonly ChangedDocument[],
  answeredBy: string | null,
): Steps<void> {
  if (replaced.length === 0) return;
  const ids = replaced.map(({ taskId }) => taskId);
  yield* keepAnswers(ids, answeredBy);
  yield* removeResults(ids);
  yield* run(
    `UPDATE tasks SET import_generation = $1, line = replaced.line, priority = replaced.priority,
       request_hash = replaced.request_hash, gone = 0,
       not_before_ms = NULL, ${UNOWNED}, ${ASKED_ANEW}
     FROM json_to_recordset($2) AS replaced (task_id bigint, line bigint, priority double precision, request_hash text)
     WHERE id = replaced.task_id`,
    generation,
    replaced.map(({ taskId, task }) => ({
      ...{ task_id: taskId, request_hash: task.requestHash },
      ...placeOf(task),
    })),
  );
}

export function* finishReimport(documents: DocumentStore, runId: number): Steps<{ gone: number }> {
  const generation = yield* generationOf(runId);
  // SQLite goes over the whole table in its own order: by an index it would be a million scattered reads.
  const gone = yield* run(
    'UPDATE tasks NOT INDEXED SET gone = 1 WHERE run_id = $1 AND import_generation <> $2 AND gone = 0',
    ...[runId, generation],
  );
  yield* openImported(documents, runId);
  return { gone };
}

/** All documents of the run are there, and it can be sent. */
export function* openImported(documents: DocumentStore, runId: number): Steps<void> {
  yield* documents.settle(runId);
  yield* run(`UPDATE runs SET status = 'open' WHERE id = $1`, runId);
}

/** Locks the run against those that would delete it or import it anew. @throws LlmBatchError RUN_MISSING */
function* generationOf(runId: number): Steps<number> {
  const found = yield* one<{ import_generation: number }>(
    'SELECT import_generation FROM runs WHERE id = $1 AND deleted = 0 FOR SHARE',
    runId,
  );
  if (found === undefined) throw runMissing(runId);
  return found.import_generation;
}
