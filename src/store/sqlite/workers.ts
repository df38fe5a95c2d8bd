/** Who works on tasks. A worker is known from its first claim on, and dead once its lease has ended. */
import type Database from 'better-sqlite3';
import { leastLeaseMs } from '../../core/task.js';
import { storableInteger, storableText } from '../storable.js';

export interface DeadWorker {
  readonly id: number;
  /** 1: it had been asked to end, so that its death is no evidence against a document. */
  readonly askedToStop: number;
}

export class Workers {
  readonly #alive;
  readonly #extend;
  readonly #askedToStop;
  readonly #endLeases;
  readonly #dead;
  readonly #named;
  readonly #forget;

  constructor(database: Database.Database) {
    this.#alive = database
      .prepare<[string, number], number>('SELECT id FROM workers WHERE name = ? AND lease_until_ms >= ?')
      .pluck();
    this.#extend = database
      .prepare<[string, number], number>(
        `INSERT INTO workers (name, lease_until_ms) VALUES (?, ?)
         ON CONFLICT (name) DO UPDATE SET lease_until_ms = excluded.lease_until_ms RETURNING id`,
      )
      .pluck();
    this.#askedToStop = database.prepare<[string]>('UPDATE workers SET asked_to_stop = 1 WHERE name = ?');
    this.#endLeases = database.prepare<[]>('UPDATE workers SET lease_until_ms = 0');
    const columns = 'id, asked_to_stop AS askedToStop';
    this.#dead = database.prepare<[number], DeadWorker>(
      `SELECT ${columns} FROM workers WHERE lease_until_ms < ?`,
    );
    this.#named = database.prepare<[string], DeadWorker>(
      `SELECT ${columns} FROM workers WHERE name IN (SELECT value FROM json_each(?))`,
    );
    this.#forget = database.prepare<[number]>('DELETE FROM workers WHERE id = ?');
  }

  /** @returns the number of a worker, which is alive from now on. A lease that lasts a while is left to its beats. */
  claiming(name: string, leaseMs: number, nowMs: number): number {
    const known = this.#alive.get(storableText(name), storableInteger(nowMs + leastLeaseMs(leaseMs)));
    return known ?? this.beat(name, leaseMs, nowMs);
  }

  /** @returns the worker's number */
  beat(name: string, leaseMs: number, nowMs: number): number {
    return this.#extend.get(storableText(name), storableInteger(nowMs + leaseMs)) ?? 0;
  }

  noteStop(name: string): void {
    this.#askedToStop.run(storableText(name));
  }

  /** Nobody is alive: whoever says so has the store for itself. */
  endLeases(): void {
    this.#endLeases.run();
  }

  /** @param names null: those whose lease has ended */
  dead(names: readonly string[] | null, nowMs: number): DeadWorker[] {
    if (names === null) return this.#dead.all(storableInteger(nowMs));
    return this.#named.all(JSON.stringify(names.map(storableText)));
  }

  /** One that owns nothing any more. */
  forget(id: number): void {
    this.#forget.run(id);
  }
}
