/** How a run is getting on, as plain data: asked for by whoever draws it, ten times a second at most. */

export type ProgressPhase =
  /** Documents are being read; `total` still grows. */
  | 'importing'
  | 'running'
  /** No new call is sent; open ones may finish. */
  | 'stopping';

export type HeldBackBy =
  | 'requests'
  | 'tokens'
  | 'requests_per_day'
  | 'concurrency'
  /** Other workers use the same limits. */
  | 'share'
  /** The server asked for a pause. */
  | 'pause'
  /** The server does not answer: it is asked now and then. */
  | 'outage'
  /** The first call to a server that is new to the store goes alone. */
  | 'trial'
  /** Only documents that wait for their next try are left. */
  | 'retry_wait';

/** What a provider works on by itself. */
export interface RemoteProgress {
  /** At the provider; 0 while the first are being made. */
  readonly batches: number;
  readonly requests: number;
  /** Worked off, as the provider says; their answers come when their batch has ended. */
  readonly done: number;
  /** Batches that are worked off, and whose files are being made. */
  readonly finalizing: number;
  /** Batches whose answers are being stored. */
  readonly settling: number;
}

export interface ProgressSnapshot {
  readonly phase: ProgressPhase;
  readonly importedDocuments: number;
  readonly importedBytes: number;
  /** Null where it is not known: standard input. */
  readonly importTotalBytes: number | null;
  /** Documents of the run. */
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
  readonly openCalls: number;
  /** Calls whose answers servers work on in the background. */
  readonly openResponses: number;
  /** Calls that may be open at once. */
  readonly concurrency: number;
  /** In one call, on average of this drain's; null where none had several. */
  readonly documentsPerCall: number | null;
  /** Of the last minute. */
  readonly requestsPerMinute: number;
  /** Given or learnt; null where none is known. */
  readonly requestsPerMinuteLimit: number | null;
  readonly tokensPerMinute: number;
  readonly tokensPerMinuteLimit: number | null;
  /** Null where no price is known. */
  readonly costMicroUsd: number | null;
  /** Null where it cannot be told yet. */
  readonly etaMs: number | null;
  readonly heldBackBy: HeldBackBy | null;
  /** How long it will still hold, where that is known. */
  readonly heldBackForMs: number | null;
  /** Wall time since which no server answers; null while one does. */
  readonly outageSinceMs: number | null;
  /** Documents that are worked on one at a time, since one may have brought the program down; 0 while none is. */
  readonly suspectsLeft: number;
  /** Null where documents are sent directly. */
  readonly remote: RemoteProgress | null;
  /** Stopping: until the open calls are cut off; null when they are not. */
  readonly graceLeftMs: number | null;
}

/** A run before anything is known of it, to spread over. */
export const EMPTY_SNAPSHOT: ProgressSnapshot = {
  phase: 'running',
  importedDocuments: 0,
  importedBytes: 0,
  importTotalBytes: null,
  total: 0,
  completed: 0,
  failed: 0,
  openCalls: 0,
  openResponses: 0,
  concurrency: 0,
  documentsPerCall: null,
  requestsPerMinute: 0,
  requestsPerMinuteLimit: null,
  tokensPerMinute: 0,
  tokensPerMinuteLimit: null,
  costMicroUsd: null,
  etaMs: null,
  heldBackBy: null,
  heldBackForMs: null,
  outageSinceMs: null,
  suspectsLeft: 0,
  remote: null,
  graceLeftMs: null,
};
