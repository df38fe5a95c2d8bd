/** A look at the store as a whole, its pages included. */
import { statSync } from 'node:fs';
import type { StoreCondition } from '../store.js';
import type { Connection } from './connection.js';
import { Space } from './space.js';
import { Sweep } from './sweep.js';

/** Enough to see what is wrong; the rest is most often the same again. */
const MOST_DAMAGE_TOLD = 10;

/** Reads every page: 0.5 s for 100 MB that the system has in memory. */
export function examineDatabase({ database, path }: Connection): StoreCondition {
  const space = new Space(database);
  const complaints = database.pragma(`quick_check(${MOST_DAMAGE_TOLD})`) as { quick_check: string }[];
  const version = database.prepare<[], string>('SELECT sqlite_version()').pluck().get() ?? '';
  const leases = database
    .prepare<[], number>(`SELECT count(*) FROM tasks INDEXED BY tasks_leased WHERE state = 'in_progress'`)
    .pluck();
  return {
    schemaVersion: database.pragma('user_version', { simple: true }) as number,
    engine: `SQLite ${version}`,
    damage: complaints.map(({ quick_check }) => quick_check).filter((complaint) => complaint !== 'ok'),
    dataBytes: space.dataBytes,
    logBytes: statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0,
    freeBytes: space.freeBytes,
    openLeases: leases.get() ?? 0,
    unsweptRuns: new Sweep(database).unsweptRuns().length,
  };
}
