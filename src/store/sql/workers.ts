/**
 * Who works on tasks. A worker is known from its first claim on, and dead once its lease has ended. Whoever uses what it
 * owns locks its row against those that would take it for dead (FOR KEY SHARE, which beats do not mind).
 */
import { storableInteger } from '../storable.js';
import { idsIn } from './parts.js';
import { all, one, run, type Steps } from './steps.js';

export interface DeadWorker {
  readonly id: number;
  /** 1: it had been asked to end, so that its death is no evidence against a document. */
  readonly askedToStop: number;
}

/** @returns the worker's number */
export function* beatWorker(name: string, leaseMs: number): Steps<number> {
  const worker = yield* one<{ id: number }>(
    `INSERT INTO workers (name, lease_until_ms) VALUES ($1, now_ms() + $2)
     ON CONFLICT (name) DO UPDATE SET lease_until_ms = excluded.lease_until_ms RETURNING id`,
    ...[name, storableInteger(leaseMs)],
  );
  return worker?.id ?? 0;
}

export function* noteStopOfWorker(name: string): Steps<void> {
  yield* run('UPDATE workers SET asked_to_stop = 1 WHERE name = $1', name);
}

/**
 * Locks them, so that nobody else takes them for dead and they do nothing with what they own. One that is in the middle
 * of a transaction is alive, whatever its lease says.
 * @param names null: those whose lease has ended
 */
export function lockDeadWorkers(names: readonly string[] | null): Steps<DeadWorker[]> {
  const workers = 'SELECT id, asked_to_stop AS "askedToStop" FROM workers WHERE';
  return names === null
    ? all(`${workers} lease_until_ms < now_ms() ORDER BY id FOR UPDATE SKIP LOCKED`)
    : all(`${workers} name IN (SELECT json_array_elements_text($1)) ORDER BY id FOR UPDATE`, names);
}

/** Those that own nothing any more. */
export function* forgetWorkers(ids: readonly number[]): Steps<void> {
  yield* run(`DELETE FROM workers WHERE id IN ${idsIn('$1')}`, ids);
}
