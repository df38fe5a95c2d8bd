/**
 * A transaction, told once for every backend: a generator that yields statements and goes on with their answers. SQLite
 * plays it in one go, PostgreSQL waits for each answer. A transaction that is tried again is played anew.
 *
 * Statements are written for PostgreSQL, with the hints that SQLite needs (`INDEXED BY`, `NOT INDEXED`); each backend leaves
 * out, or says otherwise, what it does not know. `now_ms()` is the time by which tasks are due and leases end, `wall_ms()`
 * that by which people tell when something was. Texts that may hold NUL are parameters of their own: in a list SQLite
 * would end them there.
 */

/** Lists and objects go as JSON, for `json_to_recordset` and its kin. */
export type StatementValue = string | number | null | Buffer | readonly unknown[] | object;

export interface Statement {
  readonly sql: string;
  readonly parameters: readonly StatementValue[];
}

/** What a statement gave. */
export interface Answer {
  readonly rows: readonly object[];
  /** How many rows it changed. */
  readonly changes: number;
}

/** Each step is answered before the next: a statement by its answer, a list of generators by their results. */
export type Steps<Result> = Generator<Statement | readonly Steps<unknown>[], Result, unknown>;

export function* all<Row extends object>(sql: string, ...parameters: StatementValue[]): Steps<Row[]> {
  const { rows } = (yield { sql, parameters }) as Answer;
  return rows as Row[];
}

export function* one<Row extends object>(
  sql: string,
  ...parameters: StatementValue[]
): Steps<Row | undefined> {
  return (yield* all<Row>(sql, ...parameters))[0];
}

/** @returns how many rows it changed */
export function* run(sql: string, ...parameters: StatementValue[]): Steps<number> {
  return ((yield { sql, parameters }) as Answer).changes;
}

/** Of which none waits for what another says: a server gets them all at once. */
export function* together<Results extends readonly unknown[]>(
  ...steps: { readonly [Index in keyof Results]: Steps<Results[Index]> }
): Steps<Results> {
  return (yield steps) as Results;
}

export interface TransactionOptions {
  /** Goes over a whole run: may take minutes. */
  readonly isLong?: boolean;
  /**
   * Nothing is lost with it when the database crashes at once: its commit does not wait for the disk. That of any
   * transaction after it does, for both.
   */
  readonly mayBeLost?: boolean;
}

/** Each method is one transaction, and plays `work` as often as it takes. @throws LlmBatchError STORE_* (exit 5) */
export interface Player {
  /** On one snapshot. */
  read<T>(work: () => Steps<T>, options?: Pick<TransactionOptions, 'isLong'>): Promise<T>;
  /** As `read`, where `work` is one statement: it is a snapshot by itself. */
  readOnce<T>(work: () => Steps<T>): Promise<T>;
  /** Durable when the promise resolves (unless it may be lost), undone when it rejects. */
  write<T>(work: () => Steps<T>, options?: TransactionOptions): Promise<T>;
}

/** For what a backend has done by itself. */
// biome-ignore lint/correctness/useYield: nothing is asked.
export function* already<T>(result: T): Steps<T> {
  return result;
}
