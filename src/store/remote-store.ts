/** The port to what providers work on by themselves. As in `Store`, every method is one whole transaction. */
import type {
  BatchLoad,
  BatchProgress,
  BatchRecord,
  BatchSettlement,
  NewBatch,
  StoredResponse,
} from '../core/batch-record.js';
import type { CallTask } from '../core/call.js';
import type { LeasedTask } from '../core/task.js';

export interface RemoteStore {
  /** A batch that is being built and has no task yet. */
  begin(batch: NewBatch): Promise<BatchRecord>;
  /**
   * The batch takes tasks over from the worker that has claimed them: no rescue puts them back from here on.
   * @returns the ids of those whose lease was no longer ours
   */
  give(batchId: number, tasks: readonly CallTask[], load: BatchLoad): Promise<readonly number[]>;
  /** Notes what has become known; of a batch that is settled nothing is noted any more. */
  note(
    batchId: number,
    progress: Partial<Omit<BatchProgress, 'state'>> & { readonly state?: OpenBatchState },
  ): Promise<void>;
  /** Tasks that the batch has, by id, those of `taskIds` alone where it is given. */
  tasksOf(
    batchId: number,
    options: { readonly taskIds?: readonly number[]; readonly limit: number },
  ): Promise<readonly LeasedTask[]>;
  /**
   * What came of tasks of the batch, each with its row in the ledger.
   * @returns the ids of tasks that are not the batch's any more: nothing of theirs was kept, and nothing counted twice
   */
  settle(batchId: number, settlements: readonly BatchSettlement[]): Promise<readonly number[]>;
  /** Puts tasks back to ready, with no attempt used. @returns how many; less than `limit` when none is left */
  giveBack(batchId: number, limit: number): Promise<number>;
  /** The batch is done with, once it has no task any more. @returns false while it has */
  end(batchId: number): Promise<boolean>;
  /** In the order in which they were begun, settled ones too, but responses only while servers have them. */
  list(runId: number): Promise<readonly BatchRecord[]>;
  /** Responses of a run, in the order in which they were taken; they are noted by `Store.record`. */
  responsesOf(runId: number): Promise<readonly StoredResponse[]>;
}

export type OpenBatchState = Exclude<BatchProgress['state'], 'settled'>;
