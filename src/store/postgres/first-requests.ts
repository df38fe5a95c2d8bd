/** What the sharing of answers remembers: one table for all runs, in which any process may go on with a pairing. */
import { idsIn } from '../sql/parts.js';
import type { FirstRequests } from '../sql/sharing.js';

export const FIRST_REQUESTS: FirstRequests = {
  name: '',
  rememberAnswered: `INSERT INTO first_requests (run_id, request_hash, task_id)
    SELECT DISTINCT ON (request_hash) $3, request_hash, id FROM tasks
    WHERE id > $1 AND id <= $2 AND state = 'completed' AND run_id IN ${idsIn('$4')}
    ORDER BY request_hash, id ON CONFLICT DO NOTHING`,
  rememberOwn: `INSERT INTO first_requests AS first (run_id, request_hash, task_id)
    SELECT DISTINCT ON (request_hash) run_id, request_hash, id FROM tasks
    WHERE id > $1 AND id <= $2 AND run_id = $3 AND gone = 0 AND state IN ('ready', 'delayed')
    ORDER BY request_hash, priority DESC, id
    ON CONFLICT (run_id, request_hash) DO UPDATE SET task_id = excluded.task_id WHERE EXISTS (
      SELECT 1 FROM tasks AS known JOIN tasks AS other ON other.id = excluded.task_id
      WHERE known.id = first.task_id AND known.state <> 'completed' AND known.priority < other.priority)`,
  pair: `UPDATE tasks SET shared_task_id = source.id, state = 'ready', not_before_ms = NULL,
      shared_from = CASE source.run_id WHEN tasks.run_id THEN 'run' ELSE 'earlier_run' END
    FROM first_requests AS first JOIN tasks AS source ON source.id = first.task_id
    WHERE tasks.id > $1 AND tasks.id <= $2 AND tasks.run_id = $3 AND tasks.gone = 0
      AND tasks.state IN ('ready', 'delayed')
      AND first.run_id = $3 AND first.request_hash = tasks.request_hash
      AND source.request_hash = tasks.request_hash AND source.id <> tasks.id`,
  forget: 'DELETE FROM first_requests WHERE run_id = $1',
};
