/** Documents of an import, and their tasks by key. */
import { createHash } from 'node:crypto';
import type { NewTask } from '../../core/task.js';
import type { DocumentStore, ExistingTask } from '../sql/reimports.js';
import { all, already, run } from '../sql/steps.js';
import { storableInteger, storableReal, storableText } from '../storable.js';
import { rowsOf, toColumns } from './wire.js';

const KEY_HASH = { key_hash: 'text' } as const;
const CHANGED = { task_id: 'bigint', id_is_number: 'bigint', metadata_json: 'text', body: 'text' } as const;
const NEW_DOCUMENT = {
  ...CHANGED,
  key: 'text',
  occurrence: 'bigint',
  request_hash: 'text',
  line: 'bigint',
  priority: 'double precision',
} as const;

/** Long keys do not fit an index; nobody finds two that share 128 bits of SHA-256. */
export function keyHash({ key, occurrence }: Pick<NewTask, 'key' | 'occurrence'>): string {
  return createHash('sha256')
    .update(`${occurrence} ${storableText(key)}`)
    .digest('hex')
    .slice(0, 32);
}

function hashColumns(hashes: readonly string[]): Buffer[] {
  return toColumns(
    KEY_HASH,
    hashes.map((key_hash) => ({ key_hash })),
  );
}

export const DOCUMENTS: DocumentStore = {
  *add(runId, generation, tasks) {
    if (tasks.length === 0) return 0;
    const hashes = tasks.map(keyHash);
    const fresh = yield* all<{ key_hash: string; task_id: number }>(
      `INSERT INTO task_keys (run_id, key_hash, task_id)
       SELECT $1, key_hash::uuid, nextval('tasks_id_seq') FROM ${rowsOf(KEY_HASH, 'document', 2)}
       ON CONFLICT DO NOTHING RETURNING replace(key_hash::text, '-', '') AS key_hash, task_id`,
      runId,
      ...hashColumns(hashes),
    );
    // Of documents that share a key the first has the number.
    const ids = new Map(fresh.map(({ key_hash, task_id }) => [key_hash, task_id]));
    const added = tasks.flatMap((task, ordinal) => {
      const hash = hashes[ordinal] ?? '';
      const task_id = ids.get(hash);
      ids.delete(hash);
      if (task_id === undefined) return [];
      const { key, occurrence, requestHash } = task;
      const place = { line: storableInteger(task.line), priority: storableReal(task.priority) };
      return [{ ...changedColumns(task_id, task), key, occurrence, request_hash: requestHash, ...place }];
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
    return added.length;
  },

  *find(runId, documents) {
    const hashes = documents.map(keyHash);
    const rows = yield* all<ExistingTask & { readonly key_hash: string }>(
      `SELECT replace(key_hash::text, '-', '') AS key_hash, id, state, request_hash, gone, line, priority
       FROM task_keys JOIN tasks ON tasks.id = task_keys.task_id
       WHERE task_keys.run_id = $1 AND task_keys.key_hash = ANY ($2::text[]::uuid[])`,
      runId,
      ...hashColumns(hashes),
    );
    const tasks = new Map(rows.map((row) => [row.key_hash, row]));
    return hashes.map((hash) => tasks.get(hash));
  },

  *setDocuments(changed) {
    if (changed.length === 0) return;
    yield* run(
      `UPDATE documents SET metadata_json = changed.metadata_json, id_is_number = changed.id_is_number, body = changed.body
       FROM ${rowsOf(CHANGED, 'changed')}
       WHERE documents.task_id = changed.task_id AND (documents.metadata_json, documents.id_is_number, documents.body)
         IS DISTINCT FROM (changed.metadata_json, changed.id_is_number, changed.body)`,
      ...toColumns(
        CHANGED,
        changed.map(({ taskId, task }) => changedColumns(taskId, task)),
      ),
    );
  },

  settle: () => already(undefined),
};

function changedColumns(task_id: number, { idIsNumber, metadataJson, body }: NewTask) {
  return { task_id, id_is_number: idIsNumber ? 1 : 0, metadata_json: metadataJson, body };
}
