/**
 * The states of a task as the store keeps them. Users see `pending` for ready and delayed together.
 *
 *   ready ──claim──▶ in_progress ──settle──▶ completed | failed
 *     ▲                  │
 *     │                  ├─ release (throttled, stopped: no attempt used) ─▶ ready | delayed
 *     │                  ├─ retry (attempt used, back-off) ───────────────▶ delayed
 *     │                  └─ rescue (its worker died) ─────────────────────▶ ready | failed (poison)
 *     ├──promote── delayed
 *     └──retry command── failed           ready | delayed | in_progress ──cancel──▶ cancelled
 */
export const TASK_STATES = ['ready', 'delayed', 'in_progress', 'completed', 'failed', 'cancelled'] as const;

export type TaskState = (typeof TASK_STATES)[number];

export type TaskCounts = Readonly<Record<TaskState, number>>;

/** A document as the import hands it to the store. */
export interface NewTask {
  /** 1-based line of the input; also the order of the results. */
  readonly line: number;
  /** The document's id field as text, or `sha256:…` of its content. */
  readonly key: string;
  /** The id field is a number: results show it as one. */
  readonly idIsNumber?: boolean | undefined;
  /** 0 for the first document with this key, 1 for the second, … */
  readonly occurrence: number;
  /** Hash of the rendered request: tells an edited document from one that only moved. */
  readonly requestHash: string;
  /** Higher is claimed first; 0 where the document says nothing. */
  readonly priority: number;
  /** The input line as it was. */
  readonly body: string;
  /** The text of the document's `metadata` as it stands there, carried to the results. */
  readonly metadataJson: string | null;
}

/**
 * A task whose call was open at this many crashes may be their cause. It is claimed alone, so that the next crash
 * tells: of several nobody can say which brought the process down, if any did. It comes after all others, so that
 * they need not wait for it, nor it for the next kill from outside.
 */
export const SUSPECT_AFTER_CRASHES = 2;

/**
 * Of the tasks whose calls were open at one crash, a worker holds so many at most: should it crash again, those are
 * the suspects, and working on each alone takes its time. As many as the default concurrency, which thus goes on.
 */
export const MOST_CRASHED_TOGETHER = 16;

/** A task this worker owns until its lease ends; every later write names `attemptToken`. */
export interface LeasedTask {
  readonly taskId: number;
  readonly line: number;
  readonly key: string;
  readonly body: string;
  /** Attempts used before this one. */
  readonly attempts: number;
  /** Crashes at which its call was open. From `SUSPECT_AFTER_CRASHES` on it is claimed alone. */
  readonly crashCount: number;
  /** For a suspect alone: how many are left that can be claimed, this one included. */
  readonly suspectsLeft?: number;
  /** How long throttling had held the task back when it was claimed; null when that is not why it waited. */
  readonly throttledForMs: number | null;
  /** Of this task, in place of the run's. */
  readonly maxAttempts?: number;
  /** Of the trace in which it was handed in (W3C Trace Context). */
  readonly traceparent?: string;
  /** When it was handed in, where that is known of it alone. */
  readonly submittedAtMs?: number;
  /** Random, new at each claim: a worker that lost its lease cannot write with an old one. */
  readonly attemptToken: string;
}

/** Where a task stands in the input. */
export interface TaskPlace {
  readonly taskId: number;
  readonly line: number;
}

/** So long a worker's lease lasts after a claim at the least: one that lasts this long is left to the worker's beats. */
export function leastLeaseMs(leaseMs: number): number {
  return leaseMs / 2;
}
