/**
 * Which task has a key. Keys are mostly hashes, so each new one falls on another page of any index, and a page is
 * what a commit writes: with a plain unique index an import writes four times the bytes of its documents. So new
 * keys stay in memory (the tail), and go into the index a hundred thousand at a time, in its own order. A crash
 * loses nothing: the tail is read again from the tasks themselves. The index holds short hashes; a task that
 * is found is always compared by its whole key.
 */
import type Database from 'better-sqlite3';

/** About 10 MB of memory, and a fifth of a second when the index takes them. */
const LONGEST_TAIL = 100_000;
/** One statement for many rows saves most of the calls into SQLite. */
const ROWS_PER_INSERT = 50;

interface Tail {
  readonly runId: number;
  /** Task ids by key hash. */
  readonly taskIds: Map<number, number>;
  /** What this process has put into an index that was empty; null where more may be in it. */
  readonly indexed: HashFilter | null;
}

export class KeyIndex {
  readonly #dataVersion;
  readonly #selectUnindexedFrom;
  readonly #updateUnindexedFrom;
  readonly #selectTail;
  readonly #hasIndexed;
  readonly #selectIndexed;
  readonly #selectTask;
  readonly #insertRows;
  readonly #insertRow;
  #tail: Tail | null = null;
  #seenDataVersion = -1;

  constructor(database: Database.Database) {
    this.#dataVersion = database.prepare<[], number>('PRAGMA data_version').pluck();
    this.#selectUnindexedFrom = database
      .prepare<[number], number | null>('SELECT unindexed_from FROM runs WHERE id = ?')
      .pluck();
    this.#updateUnindexedFrom = database.prepare<[number | null, number]>(
      'UPDATE runs SET unindexed_from = ? WHERE id = ?',
    );
    this.#selectTail = database.prepare<[number, number], { id: number; key: string; occurrence: number }>(
      'SELECT id, key, occurrence FROM tasks WHERE id >= ? AND run_id = ?',
    );
    this.#hasIndexed = database
      .prepare<[number], number>('SELECT EXISTS (SELECT 1 FROM task_keys WHERE run_id = ?)')
      .pluck();
    this.#selectIndexed = database
      .prepare<[number, number, string, number], number>(
        `SELECT tasks.id FROM task_keys JOIN tasks ON tasks.id = task_keys.task_id
         WHERE task_keys.run_id = ? AND key_hash = ? AND key = ? AND occurrence = ?`,
      )
      .pluck();
    this.#selectTask = database
      .prepare<[number, string, number], number>(
        'SELECT id FROM tasks WHERE id = ? AND key = ? AND occurrence = ?',
      )
      .pluck();
    const insert = (rows: number): string =>
      `INSERT INTO task_keys (run_id, key_hash, task_id) VALUES ${Array(rows).fill('(?, ?, ?)').join(', ')}`;
    this.#insertRows = database.prepare<number[]>(insert(ROWS_PER_INSERT));
    this.#insertRow = database.prepare<number[]>(insert(1));
  }

  /** Call first in each transaction that uses the index: makes sure that the tail is this run's, and current. */
  open(runId: number): void {
    const dataVersion = this.#dataVersion.get() ?? 0;
    if (this.#tail?.runId === runId && this.#seenDataVersion === dataVersion) return;
    this.#seenDataVersion = dataVersion;
    const indexed = this.#hasIndexed.get(runId) === 0 ? new HashFilter() : null;
    this.#tail = { runId, taskIds: new Map(), indexed };
    const from = this.#selectUnindexedFrom.get(runId) ?? null;
    if (from === null) return;
    for (const { id, key, occurrence } of this.#selectTail.all(from, runId)) {
      this.#tail.taskIds.set(hashKey(key, occurrence), id);
    }
  }

  /** Whether a task that is not in the index yet has this hash; its row must be there before `find`. */
  tailHas(hash: number): boolean {
    return this.#opened().taskIds.has(hash);
  }

  /** @returns the task's id */
  find(hash: number, key: string, occurrence: number): number | undefined {
    const tail = this.#opened();
    const inTail = tail.taskIds.get(hash);
    if (inTail !== undefined && this.#selectTask.get(inTail, key, occurrence) !== undefined) return inTail;
    if (tail.indexed !== null && !tail.indexed.mayHave(hash)) return undefined;
    return this.#selectIndexed.get(tail.runId, hash, key, occurrence);
  }

  /** For a task that `find` did not find. Ids must rise. */
  add(hash: number, taskId: number): void {
    const { runId, taskIds } = this.#opened();
    // Two keys with one hash cannot both be in the tail; in the index they can.
    if (taskIds.size >= LONGEST_TAIL || taskIds.has(hash)) this.settle(runId);
    if (taskIds.size === 0) this.#updateUnindexedFrom.run(taskId, runId);
    taskIds.set(hash, taskId);
  }

  /** Puts the tail into the index: when it is long, and when an import ends. */
  settle(runId: number): void {
    this.open(runId);
    const { taskIds, indexed } = this.#opened();
    if (taskIds.size === 0) return;
    const hashes = Float64Array.from(taskIds.keys()).sort();
    let rows: number[] = [];
    for (const hash of hashes) {
      indexed?.add(hash);
      rows.push(runId, hash, taskIds.get(hash) ?? 0);
      if (rows.length < ROWS_PER_INSERT * 3) continue;
      this.#insertRows.run(...rows);
      rows = [];
    }
    for (let at = 0; at < rows.length; at += 3) this.#insertRow.run(...rows.slice(at, at + 3));
    this.#updateUnindexedFrom.run(null, runId);
    taskIds.clear();
  }

  /** After a transaction was undone, and with a run that was deleted: what is in memory may be wrong. */
  forget(): void {
    this.#tail = null;
  }

  #opened(): Tail {
    if (this.#tail === null) throw new Error('the key index was not opened in this transaction');
    return this.#tail;
  }
}

const FILTER_BITS = 2 ** 24;

/**
 * Tells, in 2 MB, that a hash is not in the index: a first import, whose keys are all new, need not ask SQLite for each
 * of them. Of a million hashes it takes 1 in 80 for one that may be there. (Bloom, 1970, with two bits a hash.)
 */
class HashFilter {
  readonly #bits = new Uint8Array(FILTER_BITS / 8);

  add(hash: number): void {
    for (const bit of [lowBit(hash), highBit(hash)]) this.#bits[bit >>> 3] = this.#at(bit) | (1 << (bit & 7));
  }

  mayHave(hash: number): boolean {
    return this.#isSet(lowBit(hash)) && this.#isSet(highBit(hash));
  }

  #isSet(bit: number): boolean {
    return (this.#at(bit) & (1 << (bit & 7))) !== 0;
  }

  #at(bit: number): number {
    return this.#bits[bit >>> 3] ?? 0;
  }
}

function lowBit(hash: number): number {
  return hash % FILTER_BITS;
}

/** Of the 47 bits the upper ones: independent of the lower 24 but for one. */
function highBit(hash: number): number {
  return Math.floor(hash / 2 ** 23) % FILTER_BITS;
}

/**
 * 47 bits, which SQLite keeps in six bytes. Two lanes of FNV-1a with different multipliers, mixed at the end; part
 * of the file format. The occurrence is hashed too, or a thousand equal documents would share one hash.
 */
export function hashKey(key: string, occurrence: number): number {
  let high = 0x811c9dc5 ^ occurrence;
  let low = 0x9747b28c ^ occurrence;
  for (let index = 0; index < key.length; index += 1) {
    const unit = key.charCodeAt(index);
    high = Math.imul(high ^ unit, 0x01000193);
    low = Math.imul(low ^ unit, 0x85ebca6b);
  }
  high = Math.imul(high ^ (high >>> 16), 0x85ebca6b);
  high = Math.imul(high ^ (high >>> 13) ^ low, 0xc2b2ae35);
  low = Math.imul(low ^ (low >>> 15) ^ high, 0x2c1b3c6d);
  return (((high ^ (high >>> 16)) >>> 0) & 0x7fff) * 2 ** 32 + ((low ^ (low >>> 13)) >>> 0);
}
