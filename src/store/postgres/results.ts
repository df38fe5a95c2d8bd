/** Settled tasks in input order, a page at a time: no snapshot stays open, so the server can clear away what is old. */
import type { ResultFilter, ResultRow } from '../../core/result-row.js';
import { RESULT_COLUMNS, type SettledColumns, toResultRow } from '../rows.js';
import type { ResultPageOptions } from '../store.js';
import type { Transaction } from './connections.js';

/** Each names the terms of its index, which is how the planner sees that a partial index fits. */
const SOURCES: Readonly<Record<ResultFilter, string>> = {
  completed: `state IN ('completed', 'failed') AND state = 'completed'`,
  failed: `state = 'failed'`,
  all: `state IN ('completed', 'failed')`,
};

/**
 * While an edited input is being imported, a task that has moved and one that has not been looked at yet may
 * have the same line. Pages go on after a line, so a page never ends in the middle of one.
 */
export async function resultPage(transaction: Transaction, options: ResultPageOptions): Promise<ResultRow[]> {
  const { runId, afterLine, limit, kind = null } = options;
  const read = (afterLine: number, upToLine: number, limit: number | null): Promise<SettledColumns[]> =>
    transaction.all(pageSql(options), runId, afterLine, upToLine, kind, limit);
  const rows = await read(afterLine, Number.MAX_SAFE_INTEGER, limit);
  const lastLine = rows.at(-1)?.line;
  if (lastLine === undefined || rows.length < limit) return rows.map(toResultRow);
  const lastLineRows = await read(lastLine - 1, lastLine, null);
  return [...rows.filter((row) => row.line < lastLine), ...lastLineRows].map(toResultRow);
}

/** The page's tasks are found by index first; only theirs are joined. */
function pageSql({ only, includeBody, includeResponse = false }: ResultPageOptions): string {
  return `SELECT page.id, page.line, page.key, page.state, page.attempts, page.shared_from, ${RESULT_COLUMNS},
      ${includeResponse ? 'results.response_packed' : 'NULL AS response_packed'},
      documents.metadata_json, documents.id_is_number, ${includeBody ? 'documents.body' : 'NULL AS body'}
    FROM (
      SELECT id, line, key, state, attempts, shared_from FROM tasks
      WHERE run_id = $1 AND line > $2 AND line <= $3 AND ${SOURCES[only]} AND gone = 0
        AND ($4::text IS NULL OR failure_kind = $4)
      ORDER BY line, id LIMIT $5
    ) AS page
    JOIN results ON results.task_id = page.id
    JOIN documents ON documents.task_id = page.id
    ORDER BY page.line, page.id`;
}
