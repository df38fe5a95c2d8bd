/** Settled tasks in input order, a page at a time: no snapshot stays open, so that what is old can be cleared away. */
import type { ResultFilter, ResultRow } from '../../core/result-row.js';
import { RESULT_COLUMNS, type SettledColumns, toResultRow } from '../rows.js';
import type { ResultPageOptions } from '../store.js';
import { runExists } from './runs.js';
import { all, type Steps } from './steps.js';

/** Each names the terms of its index, which is how a planner sees that a partial index fits. */
const SOURCES: Readonly<Record<ResultFilter, string>> = {
  completed: `tasks INDEXED BY tasks_settled WHERE state IN ('completed', 'failed') AND state = 'completed'`,
  failed: `tasks INDEXED BY tasks_failed WHERE state = 'failed'`,
  all: `tasks INDEXED BY tasks_settled WHERE state IN ('completed', 'failed')`,
};

/**
 * While an edited input is being imported, a task that has moved and one that has not been looked at yet may
 * have the same line. Pages go on after a line, so a page never ends in the middle of one.
 */
export function* resultPage(options: ResultPageOptions): Steps<ResultRow[]> {
  const { runId, afterLine, limit, kind = null } = options;
  if (!(yield* runExists(runId))) return [];
  const read = (after: number, upTo: number, most: number): Steps<SettledColumns[]> =>
    all(pageSql(options), runId, after, upTo, kind, most);
  const rows = yield* read(afterLine, Number.MAX_SAFE_INTEGER, limit);
  const lastLine = rows.at(-1)?.line;
  if (lastLine === undefined || rows.length < limit) return rows.map(toResultRow);
  const lastLineRows = yield* read(lastLine - 1, lastLine, Number.MAX_SAFE_INTEGER);
  return [...rows.filter((row) => row.line < lastLine), ...lastLineRows].map(toResultRow);
}

/** The page's tasks are found by index first; only theirs are joined. */
function pageSql({ only, includeBody, includeResponse = false }: ResultPageOptions): string {
  return `SELECT page.id, page.line, page.key, page.state, page.attempts, page.shared_from, ${RESULT_COLUMNS},
      ${includeResponse ? 'results.response_packed' : 'NULL AS response_packed'},
      documents.metadata_json, documents.id_is_number, ${includeBody ? 'documents.body' : 'NULL AS body'}
    FROM (
      SELECT id, line, key, state, attempts, shared_from FROM ${SOURCES[only]} AND gone = 0
        AND run_id = $1 AND line > $2 AND line <= $3 AND ($4::text IS NULL OR failure_kind = $4)
      ORDER BY line, id LIMIT CAST($5 AS bigint)
    ) AS page
    JOIN results ON results.task_id = page.id
    JOIN documents ON documents.task_id = page.id
    ORDER BY page.line, page.id`;
}
