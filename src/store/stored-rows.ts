/** The port to the rows of a store as they are stored, for moving runs from one to another. */

/** What has a number that other rows name. */
export type NumberedThing = 'run' | 'task' | 'call' | 'batch';
export const NUMBERED_THINGS: readonly NumberedThing[] = ['run', 'task', 'call', 'batch'];

/** Columns that name a thing, in whichever table. */
export const NAMING_COLUMNS: Readonly<Record<string, NumberedThing>> = {
  run_id: 'run',
  task_id: 'task',
  shared_task_id: 'task',
  call_id: 'call',
  remote_batch_id: 'batch',
};

export interface CopiedTable {
  readonly name: string;
  /** In the order of which its rows are copied; the first column is the number of a thing. */
  readonly key: readonly [string, ...string[]];
  readonly of: NumberedThing;
}

/** All that a run is made of. What can be counted and looked up anew is not: counts of tasks, and the index of their keys. */
export const COPIED_TABLES: readonly CopiedTable[] = [
  { name: 'runs', key: ['id'], of: 'run' },
  { name: 'run_observations', key: ['run_id', 'kind', 'subject'], of: 'run' },
  { name: 'remote_batches', key: ['id'], of: 'batch' },
  { name: 'tasks', key: ['id'], of: 'task' },
  { name: 'documents', key: ['task_id'], of: 'task' },
  { name: 'results', key: ['task_id'], of: 'task' },
  { name: 'earlier_answers', key: ['task_id', 'request_hash', 'answered_by'], of: 'task' },
  { name: 'calls', key: ['id'], of: 'call' },
  { name: 'call_tasks', key: ['call_id', 'task_id'], of: 'call' },
  { name: 'run_totals', key: ['run_id'], of: 'run' },
  { name: 'lane_totals', key: ['run_id', 'lane'], of: 'run' },
  { name: 'latency_buckets', key: ['run_id', 'bucket'], of: 'run' },
  { name: 'served_runs', key: ['run_id'], of: 'run' },
  { name: 'served_tasks', key: ['task_id'], of: 'task' },
  { name: 'webhooks', key: ['task_id'], of: 'task' },
];

export type StoredRow = Readonly<Record<string, string | number | Uint8Array | null>>;

/** The highest numbers that are given. */
export type Numbers = Readonly<Record<NumberedThing, number>>;

/** By name of the table. */
export type RowCounts = Readonly<Record<string, number>>;

export interface RowSource {
  lastNumbers(): Promise<Numbers>;
  countRows(): Promise<RowCounts>;
  /** The next rows after one, in the order of the key; a page, empty after the last. @param after null: from the first */
  readRows(table: CopiedTable, after: StoredRow | null): Promise<readonly StoredRow[]>;
}

/** As in `Store`, every method is one whole transaction. */
export interface RowTarget {
  /**
   * Keeps numbers free for what is to come, above those that are given; until it is ended nobody else's copy comes in
   * between, and what is there of one that was cut off is left alone.
   * @returns what the numbers of the source are raised by
   * @throws LlmBatchError STORE_LOCKED while somebody else copies; COPY_NAME_TAKEN
   */
  begin(runNames: readonly string[], numbers: Numbers): Promise<Numbers>;
  /** Rows of runs are hidden until `finish`: to everybody they are deleted ones. */
  writeRows(table: CopiedTable, rows: readonly StoredRow[]): Promise<void>;
  /** Of what was copied. */
  countRows(): Promise<RowCounts>;
  /** The runs are there. @throws LlmBatchError COPY_NAME_TAKEN */
  finish(): Promise<void>;
  /** Call in any case: what is there of a copy that was not finished is a deleted run from here on. */
  end(): Promise<void>;
}
