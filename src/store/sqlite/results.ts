/** Settled tasks in input order, a page at a time: no cursor stays open, so the WAL can be checkpointed. */
import type Database from 'better-sqlite3';
import type { ResultFilter, ResultRow } from '../../core/result-row.js';
import { RESULT_COLUMNS, type SettledColumns, toResultRow } from '../rows.js';
import type { ResultPageOptions } from '../store.js';

/** Each query names the terms of its index, which is how SQLite sees that a partial index fits. */
const SOURCES: Readonly<Record<ResultFilter, string>> = {
  completed: `tasks INDEXED BY tasks_settled WHERE state IN ('completed', 'failed') AND gone = 0 AND state = 'completed'`,
  failed: `tasks INDEXED BY tasks_failed WHERE state = 'failed' AND gone = 0`,
  all: `tasks INDEXED BY tasks_settled WHERE state IN ('completed', 'failed') AND gone = 0`,
};

/** Run, lines from (exclusive) and to (inclusive), kind, limit. */
type PageStatement = Database.Statement<[number, number, number, string | null, number], SettledColumns>;

const NO_LIMIT = -1;

export class Results {
  readonly #database: Database.Database;
  readonly #pages = new Map<string, PageStatement>();

  constructor(database: Database.Database) {
    this.#database = database;
  }

  /**
   * While an edited input is being imported, a task that has moved and one that has not been looked at yet may
   * have the same line. Pages go on after a line, so a page never ends in the middle of one.
   */
  page(options: ResultPageOptions): ResultRow[] {
    const { runId, afterLine, limit } = options;
    const kind = options.kind ?? null;
    const statement = this.#statement(options);
    const rows = statement.all(runId, afterLine, Number.MAX_SAFE_INTEGER, kind, limit);
    const lastLine = rows.at(-1)?.line;
    if (lastLine === undefined || rows.length < limit) return rows.map(toResultRow);
    const lastLineRows = statement.all(runId, lastLine - 1, lastLine, kind, NO_LIMIT);
    return [...rows.filter((row) => row.line < lastLine), ...lastLineRows].map(toResultRow);
  }

  #statement(options: ResultPageOptions): PageStatement {
    const sql = pageSql(options);
    let statement = this.#pages.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#pages.set(sql, statement);
    }
    return statement;
  }
}

/** The page's tasks are found by index first; only theirs are joined. */
function pageSql({ only, includeBody, includeResponse = false }: ResultPageOptions): string {
  return `SELECT page.id, page.line, page.key, page.state, page.attempts, page.shared_from, ${RESULT_COLUMNS},
      ${includeResponse ? 'results.response_packed' : 'NULL AS response_packed'},
      documents.metadata_json, documents.id_is_number, ${includeBody ? 'documents.body' : 'NULL AS body'}
    FROM (
      SELECT id, line, key, state, attempts, shared_from FROM ${SOURCES[only]}
        AND run_id = ? AND line > ? AND line <= ? AND failure_kind IS coalesce(?, failure_kind)
      ORDER BY line, id LIMIT ? + 0
    ) AS page
    JOIN results ON results.task_id = page.id
    JOIN documents ON documents.task_id = page.id
    ORDER BY page.line, page.id`;
}
