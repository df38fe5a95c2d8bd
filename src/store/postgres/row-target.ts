/** Takes rows of another store in. */
import type pg from 'pg';
import { EXIT_CODES, LlmBatchError, usageError } from '../../core/errors.js';
import { one, run, type Steps } from '../sql/steps.js';
import {
  COPIED_TABLES,
  type CopiedTable,
  NAMING_COLUMNS,
  type NumberedThing,
  type Numbers,
  type RowCounts,
  type RowTarget,
  type StoredRow,
} from '../stored-rows.js';
import type { Connections } from './connections.js';
import { keyHash } from './documents.js';
import { isUniqueViolation } from './errors.js';

/** Key of the advisory lock of whoever copies runs into the store, which are deleted ones until all of them is there. */
export const COPYING = 'hashtext(current_schema()) & 2147483647, -1';

/** Columns of the source that say nothing here. */
const LEFT_OUT: readonly string[] = ['unindexed_from'];
/** Sums are kept in several rows here. */
const IN_SHARDS: readonly string[] = ['run_totals', 'lane_totals', 'latency_buckets'];

/** Counts and plans are of whole tables. */
const OVER_ALL = { isLong: true };

const NOTHING: Numbers = { run: 0, task: 0, call: 0, batch: 0 };

export class PostgresRowTarget implements RowTarget {
  readonly #connections: Connections;
  #lock: pg.Client | null = null;
  #runNames: readonly string[] = [];
  #above = NOTHING;
  #last = NOTHING;

  constructor(connections: Connections) {
    this.#connections = connections;
  }

  async begin(runNames: readonly string[], numbers: Numbers): Promise<Numbers> {
    this.#lock = await this.#connections.separate();
    const { rows } = await this.#lock.query<{ is_ours: boolean }>(
      `SELECT pg_try_advisory_lock(${COPYING}) AS is_ours`,
    );
    if (rows[0]?.is_ours !== true) {
      throw new LlmBatchError(`Somebody else copies runs to ${this.#connections.address.place}.`, {
        code: 'STORE_LOCKED',
        exitCode: EXIT_CODES.store,
      });
    }
    this.#above = await this.#connections.write(function* () {
      const taken = yield* one<{ name: string }>(
        'SELECT name FROM runs WHERE deleted = 0 AND name IN (SELECT json_array_elements_text($1)) LIMIT 1',
        runNames,
      );
      if (taken !== undefined) throw nameTaken(taken.name);
      return {
        run: yield* keepFree('runs', numbers.run),
        task: yield* keepFree('tasks', numbers.task),
        call: yield* keepFree('calls', numbers.call),
        batch: yield* keepFree('remote_batches', numbers.batch),
      };
    });
    this.#runNames = runNames;
    this.#last = numbers;
    return this.#above;
  }

  async writeRows(table: CopiedTable, rows: readonly StoredRow[]): Promise<void> {
    const raised = rows.map((row) => this.#raise(table, row));
    const columns = Object.keys(raised[0] ?? {}).join(', ');
    try {
      await this.#connections.write(function* () {
        yield* run(
          `INSERT INTO ${table.name} (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::${table.name}, $1)`,
          raised,
        );
        if (table.name !== 'tasks') return;
        yield* run(
          `INSERT INTO task_keys (run_id, key_hash, task_id)
           SELECT run_id, key_hash, task_id FROM json_populate_recordset(NULL::task_keys, $1)`,
          raised.map((task) => ({
            ...{ run_id: task['run_id'], task_id: task['id'] },
            key_hash: keyHash({ key: String(task['key']), occurrence: Number(task['occurrence']) }),
          })),
        );
      });
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      throw usageError('COPY_TAKEN', `Some of what is copied is there already (${table.name}).`);
    }
  }

  countRows(): Promise<RowCounts> {
    const [above, last] = [this.#above, this.#last];
    return this.#connections.read(function* () {
      const counts: Record<string, number> = {};
      for (const { name, key, of } of COPIED_TABLES) {
        const found = yield* one<{ rows: number }>(
          `SELECT count(*) AS rows FROM ${name} WHERE ${key[0]} > $1 AND ${key[0]} <= $2`,
          above[of],
          above[of] + last[of],
        );
        counts[name] = found?.rows ?? 0;
      }
      return counts;
    }, OVER_ALL);
  }

  async finish(): Promise<void> {
    const range = [this.#above.run, this.#above.run + this.#last.run];
    try {
      await this.#connections.write(function* () {
        // So that the first claims are planned for what is there now.
        yield* run(`ANALYZE ${COPIED_TABLES.map(({ name }) => name).join(', ')}`);
        yield* run('UPDATE runs SET deleted = 0 WHERE id > $1 AND id <= $2', ...range);
      }, OVER_ALL);
    } catch (error) {
      throw isUniqueViolation(error) ? nameTaken(this.#runNames.join(', ')) : error;
    }
  }

  async end(): Promise<void> {
    const lock = this.#lock;
    this.#lock = null;
    await lock?.end();
  }

  #raise({ name, of }: CopiedTable, row: StoredRow): Record<string, unknown> {
    const raised: Record<string, unknown> = {};
    for (const [column, value] of Object.entries(row)) {
      const thing: NumberedThing | undefined = column === 'id' ? of : NAMING_COLUMNS[column];
      if (LEFT_OUT.includes(column)) continue;
      if (thing !== undefined && value !== null) raised[column] = Number(value) + this.#above[thing];
      else raised[column] = value instanceof Uint8Array ? `\\x${Buffer.from(value).toString('hex')}` : value;
    }
    if (name === 'runs') raised['deleted'] = 1;
    if (IN_SHARDS.includes(name)) raised['shard'] = 0;
    return raised;
  }
}

/** Those that add rows wait, so that none of them has a number that is kept. @returns the highest that is given */
function* keepFree(table: string, numbers: number): Steps<number> {
  yield* run(`LOCK TABLE ${table} IN SHARE ROW EXCLUSIVE MODE`);
  const sequence = yield* one<{ above: number }>(
    `SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS above FROM ${table}_id_seq`,
  );
  const above = sequence?.above ?? 0;
  if (numbers > 0) yield* run(`SELECT setval('${table}_id_seq', $1)`, above + numbers);
  return above;
}

function nameTaken(names: string): LlmBatchError {
  return usageError('COPY_NAME_TAKEN', `The store on the server already has a run called "${names}".`, {
    run: names,
  });
}
