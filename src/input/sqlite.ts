/** SQLite databases: each row of a query is a document, and the columns are its fields. */
import { resolve } from 'node:path';
import Database from 'better-sqlite3';
import { nextTurn } from '../core/clock.js';
import { LlmBatchError, usageError } from '../core/errors.js';
import { showName } from '../core/field.js';
import { theInput } from '../core/input-name.js';
import { cappedRow } from './bad-line.js';
import { statInput } from './bytes.js';
import { memberStarts, refuseRepeated } from './columns.js';
import { DEFAULT_MAX_LINE_BYTES } from './lines.js';
import type { InputRecord, RecordOptions, RecordSource } from './source.js';

const PAGE_ROWS = 1_000;
/** Keeps a page of long rows small. */
const PAGE_CHARACTERS = 1024 * 1024;
/** While SQLite waits for another program's lock, nothing else in this process goes on. */
const LOCK_WAIT_MS = 1_000;

type Row = readonly (bigint | number | string | Uint8Array | null)[];

/**
 * Opens the database read-only and prepares the query; no row is read yet.
 * @param query one SELECT statement; null if the user gave none: then the error lists the tables
 * @throws LlmBatchError (exit 2) for a file that is not a database or cannot be read now, and for a query that is missing or
 *   broken, changes something, takes parameters or gives two columns one name
 */
export async function openSqlite(path: string, cwd: string, query: string | null): Promise<RecordSource> {
  const absolutePath = resolve(cwd, path);
  const { size } = await statInput(path, absolutePath);
  if (size === 0) throw usageError('INPUT_EMPTY', `${theInput(path)} is empty.`, 'Check the path.');
  const database = errorsTold(path, () => {
    return new Database(absolutePath, { readonly: true, fileMustExist: true, timeout: LOCK_WAIT_MS });
  });
  try {
    // The first look at the file: whatever goes wrong after this is the query's fault.
    errorsTold(path, () => database.pragma('schema_version'));
    if (query === null) throw queryMissing(path, database);
    return describeQuery(path, database, query);
  } catch (error) {
    database.close();
    throw error;
  }
}

function describeQuery(name: string, database: Database.Database, query: string): RecordSource {
  const statement = prepare(name, database, query);
  const columns = statement.columns().map((column) => column.name);
  refuseRepeated(columns, `The query of ${name} gives`, 'SELECT a.id, b.id AS other_id …');
  let characters = 0;
  let rows: IterableIterator<Row> | null = null;
  return {
    name,
    description: { format: 'sqlite', query },
    totalBytes: null,
    bytesRead: () => characters,
    async *records(options) {
      const read = rowReader(columns, options);
      rows = statement.iterate();
      let line = 0;
      let page: InputRecord[] = [];
      let pageCharacters = 0;
      for (;;) {
        const next = queryErrorsTold(name, () => rows?.next());
        if (next === undefined || next.done) break;
        line += 1;
        const record = read(line, next.value);
        page.push(record);
        pageCharacters += record.text?.length ?? 0;
        if (page.length < PAGE_ROWS && pageCharacters < PAGE_CHARACTERS) continue;
        characters += pageCharacters;
        yield page;
        page = [];
        pageCharacters = 0;
        // Reading rows never yields to the event loop, which Ctrl-C and the progress line need.
        await nextTurn();
      }
      characters += pageCharacters;
      if (page.length > 0) yield page;
      if (line === 0) {
        throw usageError('INPUT_EMPTY', `The query gives no rows of ${name}.`, 'Check its WHERE.');
      }
    },
    async close() {
      // An open cursor keeps the database from being closed.
      rows?.return?.();
      database.close();
    },
  };
}

function prepare(
  name: string,
  database: Database.Database,
  query: string,
): Database.Statement<unknown[], Row> {
  const statement = queryErrorsTold(name, () => database.prepare<unknown[], Row>(query));
  if (!statement.reader || !statement.readonly) {
    throw badQuery('The query is no SELECT statement; a database is only read, never changed.', ONE_SELECT);
  }
  try {
    statement.bind();
  } catch {
    throw usageError(
      'INPUT_QUERY',
      'The query has parameters (?, :name), for which there are no values.',
      'Write the values into it.',
    );
  }
  return statement.raw(true).safeIntegers(true);
}

function rowReader(
  columns: readonly string[],
  { maxLineBytes = DEFAULT_MAX_LINE_BYTES }: RecordOptions,
): (line: number, row: Row) => InputRecord {
  const starts = memberStarts(columns);
  return (line, row) => {
    let text = '';
    for (const [index, value] of row.entries()) {
      const json = toJson(value);
      if (json === null) {
        const field = columns[index] ?? '';
        const what =
          value instanceof Uint8Array
            ? 'is a BLOB, which is no text; leave the column out, or write CAST(… AS TEXT) where it holds text'
            : 'is infinite, for which JSON has no number';
        return { line, reason: `${showName(field)} ${what}`, field, text: null };
      }
      text += starts[index] + json;
    }
    return cappedRow(line, `${text}}`, maxLineBytes);
  };
}

/** Integers keep all their digits; null for what JSON cannot hold. */
function toJson(value: Row[number]): string | null {
  if (value === null) return 'null';
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'number') return Number.isFinite(value) ? JSON.stringify(value) : null;
  return typeof value === 'string' ? JSON.stringify(value) : null;
}

function queryMissing(name: string, database: Database.Database): LlmBatchError {
  const tables = errorsTold(name, () =>
    database
      .prepare<[], string>(
        `SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid`,
      )
      .pluck()
      .all(),
  );
  const [first] = tables;
  if (first === undefined) {
    return usageError(
      'INPUT_EMPTY',
      `${theInput(name)} is a SQLite database without tables.`,
      'Check the path.',
    );
  }
  const named = `${tables.length === 1 ? 'the table' : 'the tables'} ${tables.map(showName).join(', ')}`;
  const identifier = /^[A-Za-z_]\w*$/.test(first) ? first : `"${first.replaceAll('"', '""')}"`;
  return usageError(
    'INPUT_QUERY_MISSING',
    `${theInput(name)} is a SQLite database with ${named}, and no query says which rows are the documents.`,
    { query: `SELECT * FROM ${identifier}` },
  );
}

function badQuery(message: string, example: string): LlmBatchError {
  return usageError('INPUT_QUERY', message, { example });
}

/** Turns an error in the query into one of ours, with SQLite's words. */
function queryErrorsTold<Result>(name: string, work: () => Result): Result {
  return errorsTold(name, () => {
    try {
      return work();
    } catch (error) {
      const { message } = error as Error;
      // The driver's own error: no statement, or more than one.
      if (error instanceof RangeError) throw badQuery(`The query cannot be run: ${message}.`, ONE_SELECT);
      if ((error as { code?: unknown }).code !== 'SQLITE_ERROR') throw error;
      const isQuoted = message.includes('single-quotes');
      throw badQuery(`The query of ${name} cannot be run: ${message}.`, isQuoted ? QUOTED : ONE_SELECT);
    }
  });
}

const ONE_SELECT = 'SELECT id, text FROM …';
/** Texts stand in single quotes, names in double ones. */
const QUOTED = "SELECT … WHERE language = 'en'";

/** @throws LlmBatchError (exit 2) for whatever SQLite finds wrong with the file */
function errorsTold<Result>(name: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (error instanceof LlmBatchError) throw error;
    const { message } = error as Error;
    const code = String((error as { code?: unknown }).code ?? '');
    if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')) {
      throw usageError(
        'INPUT_LOCKED',
        `The database ${name} is locked by another program, and stayed locked.`,
        'Try again when that has finished, or read a copy.',
      );
    }
    if (code === 'SQLITE_NOTADB') {
      throw usageError(
        'INPUT_NOT_SQLITE',
        `${theInput(name)} is no SQLite database, or is encrypted.`,
        'Check the path; one that is compressed or encrypted has to be unpacked first.',
      );
    }
    if (code.startsWith('SQLITE_CORRUPT')) {
      throw usageError(
        'INPUT_DAMAGED_SQLITE',
        `The database ${name} is damaged: ${message}.`,
        'Copy it again, or save what can be saved: sqlite3 FILE .recover | sqlite3 new.db',
      );
    }
    throw usageError(
      'INPUT_UNREADABLE',
      `The database ${name} cannot be read: ${message}.`,
      'Check that this user may read it and write in its folder, or read a copy.',
    );
  }
}
