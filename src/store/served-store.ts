/** The port to what tasks have that were handed in over HTTP. As in `Store`, every method is one whole transaction. */
import type {
  Idempotency,
  NewServedTask,
  ServedRun,
  ServedTask,
  SubmissionOutcome,
  WebhookMessage,
  WebhookRecord,
  WebhookTry,
} from '../core/served-task.js';

export interface SubmitOptions {
  /** Tasks of the run that may be open at once; the first ones are taken as far as there is room. */
  readonly mostOpen: number;
  /** How long a result is kept. */
  readonly ttlMs: number;
}

export interface ServedStore {
  /** The run belongs to the service from here on. @param isBulk see `ServedRun` */
  adoptRun(runId: number, isBulk: boolean): Promise<void>;
  /** Of runs that are not deleted, newest first. */
  listRuns(): Promise<readonly ServedRun[]>;
  /**
   * Adds tasks to a run that is not importing, and opens it where it was finished; one commit for all of them.
   * @returns one outcome for each
   * @throws LlmBatchError RUN_MISSING, RUN_CANCELLED
   */
  submit(
    runId: number,
    tasks: readonly NewServedTask[],
    options: SubmitOptions,
  ): Promise<readonly SubmissionOutcome[]>;
  /**
   * A run that was handed in whole has all its documents: it is open from here on.
   * @returns what came of its key; with `repeated` and `conflict` nothing was changed
   */
  openRun(
    runId: number,
    publicId: string,
    idempotency: Idempotency | null,
  ): Promise<Exclude<SubmissionOutcome, { type: 'backlog_full' }>>;
  find(publicId: string): Promise<ServedTask | null>;
  /** An open task becomes cancelled. @returns false where it had ended, or is not there */
  cancel(publicId: string): Promise<boolean>;

  /**
   * Messages that are due, for whoever asks: nobody else gets them within `holdMs`, each counts as tried.
   * @param limit at most so many
   */
  takeWebhooks(limit: number, holdMs: number): Promise<readonly WebhookMessage[]>;
  /** Tries of messages that another has taken the place of meanwhile change nothing. */
  noteWebhooks(tries: readonly WebhookTry[]): Promise<void>;
  /** How long until a message is due, 0 when it is; null when none waits. */
  nextWebhookMs(): Promise<number | null>;
  /** Those that were given up, by task. */
  listWebhooks(afterTaskId: number, limit: number): Promise<readonly WebhookRecord[]>;
  /** Sends messages again that were given up, from their first try on. @param publicId null: all @returns how many */
  retryWebhooks(publicId: string | null): Promise<number>;
  countWebhooks(): Promise<Readonly<Record<WebhookRecord['state'], number>>>;

  /**
   * Removes a page of tasks that ended over `ttlMs` ago, with their results and messages, and of calls for single tasks
   * that are as old.
   * @param cursor what the page before returned; null for the first
   * @returns where to go on; null when nothing is left that is old enough
   */
  expire(ttlMs: number, cursor: string | null, limit: number): Promise<string | null>;
}
