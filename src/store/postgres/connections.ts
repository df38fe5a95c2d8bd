/**
 * Connections to one server, and the two ways to use them: a read of one snapshot, and a write transaction. A connection
 * that breaks is replaced and what was asked is asked again, for as long as a server may take to come back.
 *
 * When it breaks while a commit is on its way, nobody has heard whether that was made, and asking again would do it
 * twice. So each transaction counts up a row of its connection's own as its last change: the row, locked first, so that
 * a transaction that is still open on the other side ends, tells. (The server's own memory of transaction numbers,
 * `pg_xact_status`, does not: after a crash a number that had reached no disk is given to another transaction.)
 */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Clock } from '../../core/clock.js';
import {
  type Answer,
  all,
  type Player,
  type Statement,
  type StatementValue,
  type Steps,
  type TransactionOptions,
} from '../sql/steps.js';
import type { Address } from './address.js';
import { ConnectionLost, isLoss, isTransient, translateError } from './errors.js';
import { COLUMN_TYPES, toWire } from './wire.js';

/** A worker drains by two at a time, a command by one; a server has about a hundred for all. */
const MOST_CONNECTIONS = 4;
const CONNECT_TIMEOUT_MS = 10_000;
/** Of ordinary statements: far more than they take, and less than a lease has left between two beats. */
const STATEMENT_TIMEOUT_MS = 15_000;
/** Of those that go over a whole run. */
const LONG_STATEMENT_TIMEOUT_MS = 30 * 60_000;
/** A client that is gone holds its locks no longer than this. */
const IDLE_IN_TRANSACTION_MS = 15_000;
/** By which a broken network is noticed that says nothing: a statement ends at the server before. */
const ANSWER_GRACE_MS = 5_000;
const KEEPALIVE_AFTER_MS = 10_000;
const FIRST_WAIT_MS = 25;
const LONGEST_WAIT_MS = 2_000;
/** As long as a failover takes; then the run stops with STORE_UNREACHABLE, and what it has is put aside. */
const PATIENCE_MS = 3 * 60_000;
/** A server that is not there when a command starts is most often a wrong address. */
const FIRST_PATIENCE_MS = 5_000;

/**
 * Ordinary statements find a few rows by an index, one after the other, whatever the planner thinks of tables that have
 * grown since it last looked: planned while a table is empty, a join by merging or hashing goes over all of it for ever.
 * So they are planned once a connection, which takes longer than to carry one out; and entries of an index that lead
 * nowhere any more are marked on the way, so that the next claim need not follow them. No statement may join two long
 * lists that have no index. Lists go as arrays, which the planner takes for ten rows, and JSON for a hundred: so many are
 * looked for in an empty table by going over all of it.
 */
const PLANS_BY_INDEX = [
  'enable_seqscan = off',
  'enable_bitmapscan = off',
  'enable_hashjoin = off',
  'enable_mergejoin = off',
  'plan_cache_mode = force_generic_plan',
];
const PLANS_OVER_ALL = [
  'enable_seqscan = on',
  'enable_bitmapscan = on',
  'enable_hashjoin = on',
  'enable_mergejoin = on',
  'plan_cache_mode = force_custom_plan',
];

/** What a connection has counted up. */
interface Session {
  readonly id: string;
  number: number;
}

export class Connections implements Player {
  readonly address: Address;
  readonly #clock: Clock;
  readonly #pool: pg.Pool;
  readonly #mode: 'write' | 'read';
  readonly #prepared = new WeakSet<pg.PoolClient>();
  readonly #sessions = new Map<pg.PoolClient, Session>();
  #hasBeenReached = false;

  constructor(address: Address, { mode, clock }: { readonly mode: 'write' | 'read'; readonly clock: Clock }) {
    this.address = address;
    this.#clock = clock;
    this.#mode = mode;
    this.#pool = new pg.Pool({ ...clientConfig(address), max: MOST_CONNECTIONS, idleTimeoutMillis: 60_000 });
    // One that breaks while nobody asks it anything is replaced when it is needed; else whoever has asked hears of it.
    this.#pool.on('error', () => undefined);
    this.#pool.on('connect', (client) => client.on('error', () => undefined));
    this.#pool.on('remove', (client) => this.#sessions.delete(client as pg.PoolClient));
  }

  /** Runs `work` on one snapshot; it may run several times. @throws LlmBatchError STORE_* (exit 5) */
  read<T>(work: () => Steps<T>, { isLong = false }: TransactionOptions = {}): Promise<T> {
    return this.#patiently(() =>
      this.#withClient(isLong, async (client, ask) => {
        const begun = ask(client, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY${settingsOf(isLong)}`);
        const [result] = await Promise.all([play(work(), client, ask), begun]);
        await ask(client, 'COMMIT');
        return result;
      }),
    );
  }

  /** One statement that changes nothing. @throws LlmBatchError STORE_* (exit 5) */
  all<Row extends object>(sql: string, ...parameters: StatementValue[]): Promise<Row[]> {
    return this.readOnce(() => all<Row>(sql, ...parameters));
  }

  /** As `read`, where `work` is one statement: it is a snapshot by itself. */
  readOnce<T>(work: () => Steps<T>): Promise<T> {
    return this.#patiently(() => this.#withClient(false, (client, ask) => play(work(), client, ask)));
  }

  /**
   * Runs `work` in one write transaction; durable when the promise resolves (unless it may be lost), undone when it
   * rejects. `work` may run several times, and must leave nothing behind outside the database.
   * @throws LlmBatchError STORE_* (exit 5)
   */
  write<T>(work: () => Steps<T>, { isLong = false, mayBeLost = false }: TransactionOptions = {}): Promise<T> {
    return this.#patiently(async () => {
      let done: { readonly result: T; readonly session: Session } | null = null;
      try {
        return await this.#withClient(isLong, async (client, ask) => {
          const session = await this.#sessionOf(client, ask);
          const begun = ask(client, `BEGIN READ WRITE${settingsOf(isLong, mayBeLost)}`);
          const [result] = await Promise.all([play(work(), client, ask), begun]);
          session.number += 1;
          done = { result, session: { ...session } };
          // In one round trip.
          await ask(client, `EXECUTE count_up (${session.number}); COMMIT`);
          return result;
        });
      } catch (error) {
        const unsure = done as { readonly result: T; readonly session: Session } | null;
        if (unsure === null || !isLoss(error)) throw error;
        if (await this.#wasCommitted(unsure.session)) return unsure.result;
        throw error;
      }
    });
  }

  /** A connection of its own, outside of those that are shared. Ended by whoever asked for it. */
  async separate(): Promise<pg.Client> {
    const client = new pg.Client(clientConfig(this.address));
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.query(this.#settings());
      return client;
    } catch (error) {
      void client.end().catch(() => undefined);
      throw translateError(error, this.address.place);
    }
  }

  async close(): Promise<void> {
    const ids = [...this.#sessions.values()].map(({ id }) => id);
    this.#sessions.clear();
    if (ids.length > 0) {
      // What is left of a session that cannot be removed now is removed with the old ones.
      await this.#withClient(false, (client, ask) =>
        ask(client, 'DELETE FROM sessions WHERE id IN (SELECT json_array_elements_text($1)::uuid)', [
          JSON.stringify(ids),
        ]),
      ).catch(() => undefined);
    }
    if (!this.#pool.ending) await this.#pool.end();
  }

  /** Tries again while the server cannot be reached, or others are in the way. `attempt` is undone whenever it throws. */
  async #patiently<T>(attempt: () => Promise<T>): Promise<T> {
    let waitMs = FIRST_WAIT_MS;
    let givesUpAtMs: number | undefined;
    for (;;) {
      try {
        const result = await attempt();
        this.#hasBeenReached = true;
        return result;
      } catch (error) {
        const nowMs = this.#clock.monotonicMs();
        givesUpAtMs ??= nowMs + (this.#hasBeenReached ? PATIENCE_MS : FIRST_PATIENCE_MS);
        if (!isTransient(error) || nowMs >= givesUpAtMs) throw translateError(error, this.address.place);
      }
      await this.#clock.sleep(waitMs);
      waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2);
    }
  }

  async #withClient<T>(isLong: boolean, use: (client: pg.PoolClient, ask: Ask) => Promise<T>): Promise<T> {
    const ask = askerFor(isLong);
    let client: pg.PoolClient;
    try {
      client = await this.#pool.connect();
    } catch (error) {
      throw asLoss(error);
    }
    let isSound = false;
    try {
      if (!this.#prepared.has(client)) {
        await ask(client, this.#settings());
        this.#prepared.add(client);
      }
      const result = await use(client, ask);
      isSound = true;
      return result;
    } catch (error) {
      if (!isLoss(error))
        isSound = await ask(client, 'ROLLBACK').then(
          () => true,
          () => false,
        );
      throw error;
    } finally {
      client.release(!isSound);
    }
  }

  /** What holds for a connection from its start on. */
  #settings(): string {
    const { schema } = this.address;
    return [
      `SET search_path = ${schema}, pg_catalog`,
      'SET standard_conforming_strings = on',
      'SET TIME ZONE UTC',
      'SET jit = off',
      `SET statement_timeout = ${STATEMENT_TIMEOUT_MS}`,
      `SET lock_timeout = ${STATEMENT_TIMEOUT_MS}`,
      `SET idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS}`,
      ...['idle = 10', 'interval = 5', 'count = 3'].map((each) => `SET tcp_keepalives_${each}`),
      ...PLANS_BY_INDEX.map((plan) => `SET ${plan}`),
      `SET default_transaction_read_only = ${this.#mode === 'read' ? 'on' : 'off'}`,
    ].join('; ');
  }

  async #sessionOf(client: pg.PoolClient, ask: Ask): Promise<Session> {
    const known = this.#sessions.get(client);
    if (known !== undefined) return known;
    const session = { id: randomUUID(), number: 0 };
    // Committed before it is needed: an unsure transaction must find it.
    await ask(
      client,
      `INSERT INTO sessions (id, number, used_at_ms) VALUES ('${session.id}', 0, now_ms());
       PREPARE count_up (bigint) AS UPDATE sessions SET number = $1, used_at_ms = now_ms() WHERE id = '${session.id}'`,
    );
    this.#sessions.set(client, session);
    return session;
  }

  /** Waits for the transaction to end where it has not. */
  #wasCommitted({ id, number }: Session): Promise<boolean> {
    return this.#patiently(() =>
      this.#withClient(false, async (client, ask) => {
        await ask(client, 'BEGIN READ WRITE');
        const { rows } = await ask<{ number: number }>(
          client,
          'SELECT number FROM sessions WHERE id = $1 FOR UPDATE',
          [id],
        );
        await ask(client, 'COMMIT');
        return (rows[0]?.number ?? -1) >= number;
      }),
    );
  }
}

type Ask = <Row extends object>(
  client: pg.ClientBase,
  sql: string,
  values?: unknown[],
) => Promise<pg.QueryResult<Row>>;

function askerFor(isLong: boolean): Ask {
  const timeoutMs = (isLong ? LONG_STATEMENT_TIMEOUT_MS : STATEMENT_TIMEOUT_MS) + ANSWER_GRACE_MS;
  return async <Row extends object>(client: pg.ClientBase, text: string, values?: unknown[]) => {
    const query = {
      ...{ text, query_timeout: timeoutMs },
      ...(values !== undefined && { ...statementOf(text), values }),
    };
    try {
      return await client.query<Row>(query);
    } catch (error) {
      throw asLoss(error);
    }
  };
}

/** What did not come from the server came from a connection that is no more. */
export function asLoss(error: unknown): unknown {
  return error instanceof pg.DatabaseError ? error : new ConnectionLost(error);
}

/** What holds for a transaction alone. */
function settingsOf(isLong: boolean, mayBeLost = false): string {
  const settings = [
    ...(isLong ? [`statement_timeout = ${LONG_STATEMENT_TIMEOUT_MS}`, ...PLANS_OVER_ALL] : []),
    ...(mayBeLost ? ['synchronous_commit = off'] : []),
  ];
  return settings.map((setting) => `; SET LOCAL ${setting}`).join('');
}

/** By what was asked: a connection parses and plans each once. */
const STATEMENTS = new Map<string, { readonly name: string; readonly text: string }>();

/**
 * Without hints that are for SQLite; there is one clock, that of the server. A list of numbers goes as an array: no plan
 * joins it, and so none goes over all of a table that was empty when it was made.
 */
function statementOf(sql: string): { readonly name: string; readonly text: string } {
  let statement = STATEMENTS.get(sql);
  if (statement === undefined) {
    const text = sql
      .replace(/ (?:NOT INDEXED|INDEXED BY \w+)/g, '')
      .replace(/ IN (\(SELECT json_array_elements_text\(\$\d+\)::bigint\))/g, ' = ANY (ARRAY$1)')
      .replaceAll('wall_ms()', 'now_ms()');
    statement = { name: `s${STATEMENTS.size}`, text };
    STATEMENTS.set(sql, statement);
  }
  return statement;
}

async function play<T>(steps: Steps<T>, client: pg.PoolClient, ask: Ask): Promise<T> {
  const answer = async ({ sql, parameters }: Statement): Promise<Answer> => {
    const { rows, rowCount } = await ask<object>(client, sql, parameters.map(toWire));
    return { rows, changes: rowCount ?? 0 };
  };
  let next = steps.next();
  while (next.done !== true) {
    const step = next.value;
    next = steps.next(
      'sql' in step ? await answer(step) : await Promise.all(step.map((each) => play(each, client, ask))),
    );
  }
  return next.value;
}

function clientConfig({ url }: Address): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: 'llm-batch',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE_AFTER_MS,
    types: COLUMN_TYPES,
    pipeline: true,
  };
}
