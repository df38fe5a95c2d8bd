/** A task as it is shown: its place in the input and what it came to. */
import type { CompletedResult, SharedFrom, TaskError } from './outcome.js';
import type { TaskState } from './task.js';
import type { TokenUsage } from './usage.js';

export type ResultFilter = 'completed' | 'failed' | 'all';

/** One task as `results` and `failures` show it. */
export interface ResultRow {
  readonly taskId: number;
  readonly line: number;
  readonly key: string;
  readonly idIsNumber?: boolean | undefined;
  readonly state: TaskState;
  readonly attempts: number;
  readonly settledAtMs: number;
  readonly result: CompletedResult | null;
  readonly error: TaskError | null;
  /** Of the call that settled the task. */
  readonly usage: TokenUsage | null;
  readonly costMicroUsd: number | null;
  readonly latencyMs: number | null;
  readonly requestId: string | null;
  /** Null when a call of its own settled it. */
  readonly sharedFrom: SharedFrom | null;
  readonly metadataJson: string | null;
  /** Only when asked for. */
  readonly body: string | null;
}

/** One task of any state; what only a settled one has is null in the others. */
export type TaskRow = Omit<ResultRow, 'settledAtMs'> & { readonly settledAtMs: number | null };
