/** Rows of an SQLite store as they are stored. */
import type { CopiedTable, NumberedThing, Numbers, RowCounts, RowSource, StoredRow } from '../stored-rows.js';
import { COPIED_TABLES, NUMBERED_THINGS } from '../stored-rows.js';
import type { Connection } from './connection.js';

const PAGE_ROWS = 2_000;
/** Documents may be long. */
const PAGE_BYTES = 4_000_000;

const TABLES: Readonly<Record<NumberedThing, string>> = {
  run: 'runs',
  task: 'tasks',
  call: 'calls',
  batch: 'remote_batches',
};

export function sqliteRows(connection: Connection): RowSource {
  const { database } = connection;
  const number = (sql: string): number => database.prepare<[], number>(sql).pluck().get() ?? 0;
  return {
    lastNumbers: () =>
      connection.read(() => {
        const last = (thing: NumberedThing) => number(`SELECT coalesce(max(id), 0) FROM ${TABLES[thing]}`);
        return Object.fromEntries(NUMBERED_THINGS.map((thing) => [thing, last(thing)])) as unknown as Numbers;
      }),
    countRows: (): Promise<RowCounts> =>
      connection.read(() =>
        Object.fromEntries(
          COPIED_TABLES.map(({ name }) => [name, number(`SELECT count(*) FROM ${name}`)] as const),
        ),
      ),
    readRows: (table, after) => connection.read(() => readPage(connection, table, after)),
  };
}

function readPage(
  { database }: Connection,
  { name, key }: CopiedTable,
  after: StoredRow | null,
): StoredRow[] {
  const columns = key.join(', ');
  const from = after === null ? '' : `WHERE (${columns}) > (${key.map(() => '?').join(', ')})`;
  const statement = database.prepare<unknown[], StoredRow>(
    `SELECT * FROM ${name} ${from} ORDER BY ${columns} LIMIT ${PAGE_ROWS}`,
  );
  const page: StoredRow[] = [];
  let bytes = 0;
  for (const row of statement.iterate(...(after === null ? [] : key.map((column) => after[column])))) {
    page.push(row);
    for (const value of Object.values(row)) bytes += typeof value === 'number' ? 0 : (value?.length ?? 0);
    if (bytes > PAGE_BYTES) break;
  }
  return page;
}
