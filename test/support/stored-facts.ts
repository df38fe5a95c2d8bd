/** What a store holds, read by SQL of our own: the program is not asked about itself. */
import Database from 'better-sqlite3';

export interface StoredTask {
  readonly key: string;
  readonly state: string;
  readonly attempts: number;
  readonly results: number;
  readonly outputJson: string | null;
  readonly requestId: string | null;
}

export interface StoredFacts {
  /** In the order of the input. */
  readonly tasks: readonly StoredTask[];
  /** Tasks by state: counted one by one, and as the store's own counters say. */
  readonly states: Readonly<Record<string, number>>;
  readonly countedStates: Readonly<Record<string, number>>;
  readonly calls: { readonly made: number; readonly open: number; readonly lost: number };
  /** `ok` for a sound file. */
  readonly integrity: string;
  /** Rows whose foreign key is broken. */
  readonly orphans: number;
}

const TASKS = `
  SELECT key, state, attempts, output_json AS outputJson, request_id AS requestId,
    (SELECT count(*) FROM results WHERE task_id = tasks.id) AS results
  FROM tasks LEFT JOIN results ON results.task_id = tasks.id ORDER BY line`;
const CALLS = `
  SELECT count(*) AS made, coalesce(sum(finished_at_ms IS NULL), 0) AS open, coalesce(sum(lost), 0) AS lost
  FROM calls`;

export function readStore(path: string): StoredFacts {
  const database = new Database(path, { readonly: true });
  try {
    const pairs = (sql: string): Record<string, number> =>
      Object.fromEntries(database.prepare<[], [string, number]>(sql).raw().all());
    const calls = database.prepare<[], StoredFacts['calls']>(CALLS).get() ?? { made: 0, open: 0, lost: 0 };
    return {
      tasks: database.prepare<[], StoredTask>(TASKS).all(),
      states: pairs('SELECT state, count(*) FROM tasks GROUP BY state ORDER BY state'),
      countedStates: pairs(
        'SELECT state, sum(tasks) FROM task_counts GROUP BY state HAVING sum(tasks) > 0 ORDER BY state',
      ),
      calls,
      integrity: database.prepare<[], string>('PRAGMA integrity_check').pluck().all().join('\n'),
      orphans: database.prepare('PRAGMA foreign_key_check').all().length,
    };
  } finally {
    database.close();
  }
}
