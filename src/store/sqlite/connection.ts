/**
 * One connection and the two ways to use it: a whole read or a whole write transaction. better-sqlite3 is
 * synchronous, so a lock held by another program must not be waited for inside SQLite: the busy timeout is
 * short, and the rest of the patience is an asynchronous wait that leaves the event loop free.
 */
import Database from 'better-sqlite3';
import type { Clock } from '../../core/clock.js';
import { isBusy, translateError } from './errors.js';
import { LogSync } from './log-sync.js';

/** The longest that SQLite itself may block the event loop, once per try. */
export const BUSY_TIMEOUT_MS = 50;
const FIRST_WAIT_MS = 25;
const LONGEST_WAIT_MS = 1_000;
/** Longer than any backup of a store should hold its lock; then the run stops with STORE_BUSY. */
const PATIENCE_MS = 30_000;

export class Connection {
  readonly database: Database.Database;
  readonly path: string;
  /** Called after a transaction was undone, by whoever keeps a picture of the database in memory. */
  onUndone: () => void = () => {};
  readonly #clock: Clock;
  readonly #log: LogSync;
  readonly #beginRead: Database.Statement<[]>;
  readonly #beginWrite: Database.Statement<[]>;
  readonly #commit: Database.Statement<[]>;
  readonly #rollback: Database.Statement<[]>;

  constructor(path: string, options: { readonly readonly: boolean; readonly clock: Clock }) {
    this.path = path;
    this.#clock = options.clock;
    this.#log = new LogSync(path);
    try {
      this.database = new Database(path, {
        readonly: options.readonly,
        fileMustExist: true,
        timeout: BUSY_TIMEOUT_MS,
      });
    } catch (error) {
      throw translateError(error, path);
    }
    this.#beginRead = this.database.prepare('BEGIN');
    this.#beginWrite = this.database.prepare('BEGIN IMMEDIATE');
    this.#commit = this.database.prepare('COMMIT');
    this.#rollback = this.database.prepare('ROLLBACK');
  }

  /** Runs `work` on one snapshot. @throws LlmBatchError STORE_* (exit 5) */
  read<T>(work: () => T): Promise<T> {
    return this.patiently(() => this.#transact(this.#beginRead, work));
  }

  /**
   * Runs `work` in one write transaction; durable when the promise resolves, undone when it rejects. `work` may
   * run several times, and must leave nothing behind outside the database when it throws.
   * @throws LlmBatchError STORE_* (exit 5)
   */
  async write<T>(work: () => T): Promise<T> {
    const result = await this.patiently(() => this.#transact(this.#beginWrite, work));
    try {
      await this.#log.sync();
    } catch (cause) {
      // Whatever the disk calls it: the transaction is in the log, so that it must not be run again.
      throw translateError(
        Object.assign(new Error('fsync', { cause }), { code: 'SQLITE_IOERR_FSYNC' }),
        this.path,
      );
    }
    return result;
  }

  /** Tries again while another program holds the lock. `attempt` is undone whenever it throws. */
  async patiently<T>(attempt: () => T): Promise<T> {
    let waitMs = FIRST_WAIT_MS;
    let givesUpAtMs: number | undefined;
    for (;;) {
      try {
        return attempt();
      } catch (error) {
        const nowMs = this.#clock.monotonicMs();
        givesUpAtMs ??= nowMs + PATIENCE_MS;
        if (!isBusy(error) || nowMs >= givesUpAtMs) throw translateError(error, this.path);
      }
      await this.#clock.sleep(waitMs);
      waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2);
    }
  }

  close(): void {
    this.#log.close();
    this.database.close();
  }

  #transact<T>(begin: Database.Statement<[]>, work: () => T): T {
    begin.run();
    try {
      const result = work();
      this.#commit.run();
      return result;
    } catch (error) {
      // A full disk or a failed write has rolled back by itself already.
      if (this.database.inTransaction) this.#rollback.run();
      this.onUndone();
      throw error;
    }
  }
}
