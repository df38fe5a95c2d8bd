/**
 * One process drains one store. The lock is an exclusive transaction on a file beside the store, which the
 * kernel ends with the process: no stale lock can remain, however the owner died. The file stays empty and is
 * never deleted, since deleting it could take a lock from under the next owner.
 */
import Database from 'better-sqlite3';
import type { Clock } from '../../core/clock.js';
import { storeLocked } from '../locked.js';
import type { StoreOwner } from '../store.js';
import type { Connection } from './connection.js';
import { createPrivateFile } from './database.js';
import { isBusy, translateError } from './errors.js';
import { isLocked, lockPathOf } from './lock-file.js';

const OWNER_KEY = 'drain_owner';
/** `readOwner` of another process looks at the file for some microseconds; that is no owner. */
const TRIES = 4;
const BETWEEN_TRIES_MS = 25;

export class DrainLock {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #lockPath: string;
  #held: Database.Database | null = null;

  constructor(connection: Connection, clock: Clock) {
    this.#connection = connection;
    this.#clock = clock;
    this.#lockPath = lockPathOf(connection.path);
  }

  /** @throws LlmBatchError STORE_LOCKED naming the owner */
  async acquire(owner: StoreOwner): Promise<void> {
    const isNew = this.#held === null;
    this.#held ??= await this.#takeLock();
    const { database } = this.#connection;
    await this.#connection.write(() => {
      // Whoever worked on this store had the lock, and has died over what it left.
      if (isNew) database.prepare('UPDATE workers SET lease_until_ms = 0').run();
      database
        .prepare<[string, string]>(
          'INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value',
        )
        .run(OWNER_KEY, JSON.stringify(owner));
    });
  }

  /** Null when no living process holds the lock, whatever its last owner left written. */
  async readOwner(runName?: string): Promise<StoreOwner | null> {
    if (!this.#isHeld()) return null;
    const owner = await this.#connection.read(() => this.#writtenOwner());
    const isOfAll = owner === null || owner.runName === null;
    return isOfAll || runName === undefined || owner.runName === runName ? owner : null;
  }

  /**
   * Call inside a write transaction: who becomes the owner meanwhile has to wait for its end.
   * @throws LlmBatchError STORE_LOCKED when another process drains this run
   */
  refuseOtherOwnerOf(runName: string): void {
    if (this.#held !== null || !this.#isHeld()) return;
    const owner = this.#writtenOwner();
    if (owner?.runName === runName) throw storeLocked(this.#connection.path, owner);
  }

  release(): void {
    this.#held?.close();
    this.#held = null;
  }

  async #takeLock(): Promise<Database.Database> {
    createPrivateFile(this.#lockPath);
    for (let attempt = 1; ; attempt += 1) {
      const lock = new Database(this.#lockPath, { timeout: 0 });
      try {
        lock.exec('BEGIN EXCLUSIVE');
        return lock;
      } catch (error) {
        lock.close();
        if (!isBusy(error)) throw translateError(error, this.#lockPath);
        if (attempt >= TRIES) throw storeLocked(this.#connection.path, await this.readOwner());
      }
      await this.#clock.sleep(BETWEEN_TRIES_MS);
    }
  }

  #writtenOwner(): StoreOwner | null {
    const json = this.#connection.database
      .prepare<[string], string>('SELECT value FROM meta WHERE key = ?')
      .pluck()
      .get(OWNER_KEY);
    return json === undefined ? null : (JSON.parse(json) as StoreOwner);
  }

  #isHeld(): boolean {
    return this.#held !== null || isLocked(this.#lockPath);
  }
}
