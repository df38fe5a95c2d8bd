/** What the sharing of answers remembers: a table of the connection's own, about 30 bytes for each request. */
import { randomUUID } from 'node:crypto';
import type Database from 'better-sqlite3';
import { idsIn } from '../sql/parts.js';
import type { FirstRequests } from '../sql/sharing.js';

/** Of the request's hash, behind `sha256:`: 72 bits find the task, and the whole hash is compared with it. */
const HASH_START = 'substr(request_hash, 8, 12)';

/** Made when it is first needed, since most runs share nothing. Call outside a transaction that may be undone. */
export function firstRequests(database: Database.Database): FirstRequests {
  database.exec(
    `CREATE TEMP TABLE IF NOT EXISTS first_requests (
       hash_start TEXT NOT NULL PRIMARY KEY, task_id INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
  );
  return {
    name: randomUUID(),
    rememberAnswered: `INSERT OR IGNORE INTO temp.first_requests SELECT ${HASH_START}, id FROM tasks NOT INDEXED
      WHERE id > $1 AND id <= $2 AND state = 'completed' AND run_id IN ${idsIn('$4')} ORDER BY id`,
    rememberOwn: `INSERT INTO temp.first_requests SELECT ${HASH_START}, id FROM tasks NOT INDEXED
      WHERE id > $1 AND id <= $2 AND run_id = $3 AND gone = 0 AND (state = 'ready' OR state = 'delayed')
      ORDER BY id
      ON CONFLICT DO UPDATE SET task_id = excluded.task_id WHERE EXISTS (
        SELECT 1 FROM tasks AS first JOIN tasks AS other ON other.id = excluded.task_id
        WHERE first.id = first_requests.task_id AND first.state <> 'completed' AND first.priority < other.priority)`,
    pair: `UPDATE tasks SET shared_task_id = source.id, state = 'ready', not_before_ms = NULL,
        shared_from = iif(source.run_id = tasks.run_id, 'run', 'earlier_run')
      FROM temp.first_requests AS first JOIN tasks AS source ON source.id = first.task_id
      WHERE tasks.id > $1 AND tasks.id <= $2 AND tasks.run_id = $3 AND tasks.gone = 0
        AND (tasks.state = 'ready' OR tasks.state = 'delayed')
        AND first.hash_start = substr(tasks.request_hash, 8, 12)
        AND source.request_hash = tasks.request_hash AND source.id <> tasks.id`,
    forget: 'DELETE FROM temp.first_requests',
  };
}
