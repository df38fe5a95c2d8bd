/**
 * What a provider works on for a run by itself: a remote batch, or a response in the background. It owns tasks as a
 * worker does, for hours instead of seconds and whether or not this program runs.
 *
 *   building ──▶ built ──▶ creating ──▶ submitted ──▶ settling ──▶ settled
 *      │           │          └─ nobody heard whether it was created: it is looked for before it is created again
 *      └───────────┴─ given up: its tasks go back, and it is settled
 */
import type { CallEnd, CallTask } from './call.js';
import type { EndpointName } from './endpoint-name.js';
import type { TaskOutcome } from './outcome.js';
import type { LeasedTask } from './task.js';

export const BATCH_STATES = ['building', 'built', 'creating', 'submitted', 'settling', 'settled'] as const;

export type BatchState = (typeof BATCH_STATES)[number];

/** Whether a provider has it, or may have it. */
export function isAtProvider(state: BatchState): boolean {
  return state === 'creating' || state === 'submitted' || state === 'settling';
}

export interface NewBatch {
  readonly runId: number;
  readonly kind: 'batch' | 'response';
  readonly lane: string;
  readonly endpoint: EndpointName;
  readonly model: string;
  readonly createdAtMs: number;
}

/** What becomes known of a batch on its way. */
export interface BatchProgress {
  readonly state: BatchState;
  /** SHA-256 of the file that it was handed in as, in hex. */
  readonly fileHash: string | null;
  /** How often it was asked to be created, as far as that was answered: a full queue refuses it for a while. */
  readonly refusals: number;
  readonly inputFileId: string | null;
  /** The provider's name for it. */
  readonly remoteId: string | null;
  readonly outputFileId: string | null;
  readonly errorFileId: string | null;
  /** In the provider's word, lower case. */
  readonly remoteState: string | null;
  readonly requestsCompleted: number;
  readonly requestsFailed: number;
  readonly polls: number;
  readonly submittedAtMs: number | null;
  /** What the provider last said against it. */
  readonly message: string | null;
}

export interface BatchRecord extends NewBatch, BatchProgress {
  readonly id: number;
  /** From 1 on, within its run. */
  readonly shard: number;
  /** Tasks that it was given. */
  readonly lines: number;
  /** Of the file. */
  readonly bytes: number;
  /** The most that what is not settled of it can be billed. */
  readonly mostTokens: number;
  /** The same in micro-dollars; 0 where no price is known. */
  readonly mostCostMicroUsd: number;
}

/**
 * A call that a server has taken to work on in the background: a batch of kind `response` with the call's one task, which
 * is there for as long as the server has it.
 */
export interface NewResponse {
  /** In the ledger: it stays open until the response is settled as any call is. */
  readonly callId: number;
  readonly task: CallTask;
  readonly batch: NewBatch;
  readonly remoteId: string;
  /** See `CallStart`. */
  readonly mostTokens: number;
  readonly mostCostMicroUsd: number | null;
}

/** What happened to responses: taken by servers, and done with. */
export interface ResponseNotes {
  readonly taken: readonly NewResponse[];
  /** Their numbers; they are kept while they have a task. */
  readonly ended: readonly number[];
}

/** A response that a server may still have. */
export interface StoredResponse {
  readonly batch: BatchRecord;
  readonly remoteId: string;
  /** Null: its answer is stored. */
  readonly open: {
    readonly task: LeasedTask;
    readonly callId: number;
    readonly startedAtMs: number;
  } | null;
}

/** What a batch takes with tasks that it is given. */
export interface BatchLoad {
  readonly bytes: number;
  readonly mostTokens: number;
  readonly mostCostMicroUsd: number;
}

/** A request that a provider has worked off in a batch: in the ledger once it has ended, with no time that it took. */
export interface RemoteCall extends Omit<CallEnd, 'callId' | 'latencyMs'> {
  readonly startedAtMs: number;
  readonly mostTokens: number;
  /** Null where no price is known. */
  readonly mostCostMicroUsd: number | null;
}

/** What one task of a batch came to. */
export interface BatchSettlement {
  /** Null: its request was not run. */
  readonly call: RemoteCall | null;
  readonly outcome: TaskOutcome;
}
