/** The port to a store as a whole: whether it is sound, and what nobody needs any more. */

/** A count that is kept beside the rows it counts, and differs from them. */
export interface CountDifference {
  readonly runName: string;
  /** What is counted, e.g. `failed documents (refused)`. */
  readonly what: string;
  readonly kept: number;
  readonly recounted: number;
}

/** What a look at the store as a whole finds. */
export interface StoreCondition {
  readonly schemaVersion: number;
  /** Of the storage engine, e.g. `SQLite 3.53.2`. */
  readonly engine: string;
  /** What the engine's own check of the stored data complains of; empty when it is sound. */
  readonly damage: readonly string[];
  readonly dataBytes: number;
  /** Of the log that has not been brought into the data yet. */
  readonly logBytes: number;
  /** Room inside the store that could be given back to the file system. */
  readonly freeBytes: number;
  /** Tasks that a worker has in progress. */
  readonly openLeases: number;
  /** Runs that were deleted and still have rows. */
  readonly unsweptRuns: number;
}

export interface StoreMaintenance {
  /** Looks at the store as a whole, its data included. */
  examine(): Promise<StoreCondition>;
  /** Compares every count and sum that is kept with the rows themselves: reads the whole store. */
  recount(): Promise<readonly CountDifference[]>;
  /**
   * Removes a page of what deleted runs left, so that no transaction is long.
   * @param cursor what the page before returned; null for the first, also after a crash
   * @param limit about how many rows to look at
   * @returns where to go on; null when nothing is left
   */
  sweepDeletedRuns(cursor: string | null, limit: number): Promise<string | null>;
  /**
   * Gives room that nothing needs any more back to the file system, a page at a time; call while `reclaimedBytes`
   * is not 0. The last call also cuts the log.
   */
  reclaimSpace(limitBytes: number): Promise<{ readonly reclaimedBytes: number }>;
}
