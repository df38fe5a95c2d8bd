/**
 * Who works on tasks. A worker is known from its first claim on, and dead once its lease has ended. Whoever uses what it
 * owns locks its row against those that would take it for dead (FOR KEY SHARE, which beats do not mind).
 */
import { storableInteger } from '../storable.js';
import type { Transaction } from './connections.js';

export interface DeadWorker {
  readonly id: number;
  /** 1: it had been asked to end, so that its death is no evidence against a document. */
  readonly askedToStop: number;
}

/** @returns the worker's number */
export async function beatWorker(transaction: Transaction, name: string, leaseMs: number): Promise<number> {
  const worker = await transaction.one<{ id: number }>(
    `INSERT INTO workers (name, lease_until_ms) VALUES ($1, now_ms() + $2)
     ON CONFLICT (name) DO UPDATE SET lease_until_ms = excluded.lease_until_ms RETURNING id`,
    name,
    storableInteger(leaseMs),
  );
  return worker?.id ?? 0;
}

export async function noteStopOfWorker(transaction: Transaction, name: string): Promise<void> {
  await transaction.run('UPDATE workers SET asked_to_stop = 1 WHERE name = $1', name);
}

/**
 * Locks them, so that nobody else takes them for dead and they do nothing with what they own. One that is in the middle
 * of a transaction is alive, whatever its lease says.
 * @param names null: those whose lease has ended
 */
export function lockDeadWorkers(
  transaction: Transaction,
  names: readonly string[] | null,
): Promise<DeadWorker[]> {
  const columns = 'id, asked_to_stop AS "askedToStop"';
  if (names === null) {
    return transaction.all(
      `SELECT ${columns} FROM workers WHERE lease_until_ms < now_ms() ORDER BY id FOR UPDATE SKIP LOCKED`,
    );
  }
  return transaction.all(
    `SELECT ${columns} FROM workers WHERE name IN (SELECT name FROM json_to_recordset($1) AS named (name text))
     ORDER BY id FOR UPDATE`,
    names.map((name) => ({ name })),
  );
}

/** Those that own nothing any more. */
export async function forgetWorkers(transaction: Transaction, ids: readonly number[]): Promise<void> {
  await transaction.run('DELETE FROM workers WHERE id IN (SELECT json_array_elements_text($1)::bigint)', ids);
}
