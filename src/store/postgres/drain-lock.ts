/**
 * Who drains or changes a run. Any number of processes may: a lock says that one is there, and keeps nobody out but
 * those that would take the run from under it. It is an advisory lock of a connection of its own, which the server ends
 * with the connection, so that none is left of a process that died; one that was only cut off takes it again.
 */
import type pg from 'pg';
import type { Clock } from '../../core/clock.js';
import { storeLocked } from '../locked.js';
import { one, run, type Steps } from '../sql/steps.js';
import type { StoreOwner } from '../store.js';
import type { Connections } from './connections.js';

/** The first half of a key, one for each schema; the second is the owner's number. Positive, as pg_locks shows it. */
const LOCK_OF_SCHEMA = 'hashtext(current_schema()) & 2147483647';
const IS_THERE = `EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = owners.id
  AND classid = (${LOCK_OF_SCHEMA})::oid AND objsubid = 2
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`;
/** Held for as long as it takes to become an owner, or to make sure that there is none. */
const ALONE = `SELECT pg_advisory_xact_lock(${LOCK_OF_SCHEMA}, 0)`;
const BETWEEN_TRIES_MS = 1_000;

export class DrainLock {
  readonly #connections: Connections;
  readonly #clock: Clock;
  #held: { readonly id: number; readonly client: pg.Client } | null = null;
  #owner: StoreOwner | null = null;

  constructor(connections: Connections, clock: Clock) {
    this.#connections = connections;
    this.#clock = clock;
  }

  /** Takes the place of what this process has said before. */
  async acquire(owner: StoreOwner): Promise<void> {
    this.#owner = owner;
    this.#held ??= await this.#takeLock();
    await this.#write();
  }

  /** @param runName of any run where it is not given. Null when nobody is there, whatever was left written. */
  async readOwner(runName?: string): Promise<StoreOwner | null> {
    const [found] = await this.#connections.all<{ owner_json: string }>(
      `SELECT owner_json FROM owners WHERE ($1::text IS NULL OR run_name IS NULL OR run_name = $1) AND ${IS_THERE}
       ORDER BY run_name IS NULL, id DESC LIMIT 1`,
      runName ?? null,
    );
    return found === undefined ? null : (JSON.parse(found.owner_json) as StoreOwner);
  }

  /**
   * Whoever would become an owner waits for the end of the transaction.
   * @returns another process that drains or changes this run; null when there is none
   */
  *otherOwnerOf(runName: string): Steps<StoreOwner | null> {
    yield* run(ALONE);
    const other = yield* one<{ owner_json: string }>(
      `SELECT owner_json FROM owners WHERE run_name = $1 AND id <> $2 AND ${IS_THERE} ORDER BY id LIMIT 1`,
      runName,
      this.#held?.id ?? 0,
    );
    return other === undefined ? null : (JSON.parse(other.owner_json) as StoreOwner);
  }

  /** @throws LlmBatchError STORE_LOCKED when another process drains or changes this run */
  *refuseOtherOwnerOf(runName: string): Steps<void> {
    const other = yield* this.otherOwnerOf(runName);
    if (other !== null) throw storeLocked(this.#connections.address.place, other);
  }

  async release(): Promise<void> {
    const held = this.#held;
    this.#held = null;
    this.#owner = null;
    if (held === null) return;
    // At once: the server may take a moment to see the end of the connection.
    await held.client.query('SELECT pg_advisory_unlock_all()').catch(() => undefined);
    await held.client.end().catch(() => undefined);
  }

  async #takeLock(): Promise<{ readonly id: number; readonly client: pg.Client }> {
    const client = await this.#connections.separate();
    const { rows } = await client.query<{ id: number }>(
      `SELECT nextval(pg_get_serial_sequence('owners', 'id')) AS id`,
    );
    const id = rows[0]?.id ?? 0;
    await client.query(`SELECT pg_advisory_lock(${LOCK_OF_SCHEMA}, $1)`, [id]);
    client.once('end', () => void this.#takeAgain(client));
    return { id, client };
  }

  /** After the server has ended the connection, or the network. */
  async #takeAgain(lost: pg.Client): Promise<void> {
    while (this.#held?.client === lost) {
      try {
        const held = await this.#takeLock();
        if (this.#held.client !== lost) {
          await held.client.end();
          return;
        }
        this.#held = held;
        await this.#write();
        return;
      } catch {
        await this.#clock.sleep(BETWEEN_TRIES_MS);
      }
    }
  }

  #write(): Promise<void> {
    return this.#connections.write(() => this.#written());
  }

  *#written(): Steps<void> {
    const [held, owner] = [this.#held, this.#owner];
    if (held === null || owner === null) return;
    yield* run(ALONE);
    yield* run(`DELETE FROM owners WHERE id <> $1 AND NOT ${IS_THERE}`, held.id);
    yield* run(
      `INSERT INTO owners (id, run_name, owner_json) VALUES ($1, $2, $3)
         ON CONFLICT (id) DO UPDATE SET run_name = excluded.run_name, owner_json = excluded.owner_json`,
      held.id,
      owner.runName,
      JSON.stringify(owner),
    );
  }
}
