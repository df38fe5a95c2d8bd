/** What only tasks have that were handed in over HTTP. */
import type { NewTask, TaskState } from './task.js';

/** How a submission is told from its own repetition; both are hashes. */
export interface Idempotency {
  readonly key: string;
  readonly bodyHash: string;
}

/** Its public id is the task's key as well. */
export interface NewServedTask extends Pick<NewTask, 'requestHash' | 'priority' | 'body' | 'metadataJson'> {
  readonly publicId: string;
  readonly idempotency: Idempotency | null;
  /** In place of the run's; null: as the run. */
  readonly maxAttempts: number | null;
  /** Whom to tell when it has ended. */
  readonly webhookUrl: string | null;
  /** Of the caller's trace (W3C Trace Context). */
  readonly traceparent: string | null;
}

export type SubmissionOutcome =
  | { readonly type: 'accepted' }
  /** The same was submitted before, under this id. */
  | { readonly type: 'repeated'; readonly publicId: string }
  /** Its idempotency key belongs to another body. */
  | { readonly type: 'conflict' }
  /** The run has as many open tasks as it may. */
  | { readonly type: 'backlog_full' };

export interface ServedTask {
  readonly taskId: number;
  readonly runId: number;
  readonly publicId: string;
  readonly state: TaskState;
  readonly submittedAtMs: number;
  readonly traceparent: string | null;
}

/** A run that belongs to the service. */
export interface ServedRun {
  readonly runId: number;
  /** Handed in whole; else the run of all single tasks. */
  readonly isBulk: boolean;
}

export interface WebhookMessage {
  readonly taskId: number;
  readonly runId: number;
  readonly publicId: string;
  readonly url: string;
  /** The same at every try. */
  readonly messageId: string;
  /** Tries so far. */
  readonly attempts: number;
  readonly traceparent: string | null;
}

/** A try to deliver a message. */
export interface WebhookTry extends Pick<WebhookMessage, 'taskId' | 'messageId'> {
  /**
   * `withdrawn`: its task is open again. `parked`: given up, until somebody wants it sent again. `gone`: the same, and for
   * all others that wait for this address.
   */
  readonly outcome: 'delivered' | 'withdrawn' | 'parked' | 'gone' | { readonly againInMs: number };
  readonly httpStatus: number | null;
  readonly problem: string | null;
}

export const WEBHOOK_STATES = ['due', 'delivered', 'parked'] as const;

export interface WebhookRecord extends Omit<WebhookMessage, 'traceparent'> {
  readonly state: (typeof WEBHOOK_STATES)[number];
  readonly httpStatus: number | null;
  readonly problem: string | null;
}
