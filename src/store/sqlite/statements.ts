/** Plays transactions in SQLite, which answers at once. */
import type Database from 'better-sqlite3';
import type { Clock } from '../../core/clock.js';
import type { Answer, Player, Statement, StatementValue, Steps } from '../sql/steps.js';
import { storableInteger, storableText } from '../storable.js';
import type { Connection } from './connection.js';
import type { Schedule } from './schedule.js';

/** What SQLite says otherwise, or has no need of: there is one writer at a time. */
const SAID_OTHERWISE: readonly (readonly [RegExp, (...found: string[]) => string])[] = [
  [/ FOR (?:NO KEY |KEY )?(?:UPDATE|SHARE)(?: OF \w+)?(?: SKIP LOCKED)?/g, () => ''],
  [/json_array_elements_text\((\$\d+)\)/g, (_, list) => `value FROM json_each(${list})`],
  [
    /json_to_recordset\((\$\d+)\) AS (\w+) \(([^)]+)\)/g,
    (_, list, name, columns = '') => {
      const values = columns
        .split(/,\s*/)
        .map((column) => column.replace(/^(\w+).*/s, "value ->> '$1' AS $1"));
      return `(SELECT ${values.join(', ')} FROM json_each(${list})) AS ${name}`;
    },
  ],
  [/::\w+/g, () => ''],
  [/ COLLATE "C"/g, () => ''],
  [/\bgreatest\(/g, () => 'max('],
  [/\b(now|wall)_ms\(\)/g, (_, clock) => `$${clock}`],
];

/** Halves of surrogate pairs, as JSON writes them. */
const UNFIT_JSON = /\\ud[89a-f]/i;

interface Prepared {
  readonly statement: Database.Statement<[unknown[]], object>;
  /** What stands where: the number of a parameter, or a clock. */
  readonly places: readonly (number | 'now' | 'wall')[];
}

export class Statements implements Player {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #schedule: Schedule;
  readonly #prepared = new Map<string, Prepared>();

  constructor(connection: Connection, clock: Clock, schedule: Schedule) {
    this.#connection = connection;
    this.#clock = clock;
    this.#schedule = schedule;
  }

  read<T>(work: () => Steps<T>): Promise<T> {
    return this.#connection.read(() => this.play(work()));
  }

  readOnce<T>(work: () => Steps<T>): Promise<T> {
    return this.read(work);
  }

  write<T>(work: () => Steps<T>): Promise<T> {
    return this.#connection.write(() => this.play(work()));
  }

  /** Call inside a transaction. */
  play<T>(steps: Steps<T>): T {
    let next = steps.next();
    while (next.done !== true) {
      const step = next.value;
      next = steps.next('sql' in step ? this.#answer(step) : step.map((each) => this.play(each)));
    }
    return next.value;
  }

  #answer({ sql, parameters }: Statement): Answer {
    const { statement, places } = this.#prepare(sql);
    // As on a server, it is one time for all of a statement.
    const timesMs: { now?: number; wall?: number } = {};
    const bound = places.map((place) => {
      if (typeof place === 'number') return toBound(parameters[place - 1] ?? null);
      timesMs[place] ??= storableInteger((place === 'now' ? this.#schedule : this.#clock).now());
      return timesMs[place];
    });
    if (statement.reader) return { rows: statement.all(bound), changes: 0 };
    return { rows: [], changes: statement.run(bound).changes };
  }

  #prepare(sql: string): Prepared {
    let prepared = this.#prepared.get(sql);
    if (prepared === undefined) {
      let text = sql;
      for (const [pattern, otherwise] of SAID_OTHERWISE) text = text.replace(pattern, otherwise);
      const places: Prepared['places'][number][] = [];
      // By place, which takes half the time that names take.
      text = text.replace(/\$(?:(\d+)|(now|wall)\b)/g, (_, number, clock) => {
        places.push(clock ?? Number(number));
        return '?';
      });
      prepared = { places, statement: this.#statement(text) };
      this.#prepared.set(sql, prepared);
    }
    return prepared;
  }

  #statement(text: string): Database.Statement<[unknown[]], object> {
    try {
      return this.#connection.database.prepare(text);
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'SQLITE_ERROR') throw error;
      // It does not fit a schema that says it is ours.
      throw Object.assign(new Error('odd schema', { cause: error }), { code: 'SQLITE_CORRUPT' });
    }
  }
}

function toBound(parameter: StatementValue): string | number | null | Buffer {
  if (typeof parameter === 'string') return storableText(parameter);
  if (parameter === null || typeof parameter === 'number' || Buffer.isBuffer(parameter)) return parameter;
  const json = JSON.stringify(parameter);
  if (!UNFIT_JSON.test(json)) return json;
  return JSON.stringify(parameter, (_, value: unknown) =>
    typeof value === 'string' ? storableText(value) : value,
  );
}
