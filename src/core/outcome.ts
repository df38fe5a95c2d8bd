/** What became of a task: its answer, its error, or its way back. */
import type { CallEnd, CallShare, CallTask, WithdrawnCall } from './call.js';
import type { FailureKind } from './failure.js';

export interface CompletedResult {
  /** JSON text of the output: a string, a parsed object or a vector. */
  readonly outputJson: string;
  readonly model: string;
  readonly finishReason: string;
  /** JSON text of an object with what the answer holds beside its text; see `ProviderAnswer`. */
  readonly detailsJson?: string | undefined;
  /** The server's body as it came, JSON text. Read only when asked for; absent in answers of schema 1 and 2. */
  readonly responseJson?: string | undefined;
}

export interface TaskError {
  readonly kind: FailureKind;
  readonly message: string;
  readonly httpStatus: number | null;
  readonly code: string | null;
  readonly requestId: string | null;
  /** JSON text of what output there was, of truncated, filtered, refused and unusable answers. */
  readonly partialOutputJson: string | null;
}

/** The error of a task for which no call was made. */
export function errorWithoutCall(kind: FailureKind, message: string): TaskError {
  return { kind, message, httpStatus: null, code: null, requestId: null, partialOutputJson: null };
}

interface Settled extends CallTask {
  /** Of the call that led here; null when none was made (a task refused before sending). */
  readonly share: CallShare | null;
}

/** What became of a leased task. All but `released` use an attempt. */
export type TaskOutcome =
  | (Settled & { readonly action: 'completed'; readonly result: CompletedResult; readonly atMs: number })
  | (Settled & { readonly action: 'failed'; readonly error: TaskError; readonly atMs: number })
  | (Settled & { readonly action: 'retry'; readonly error: TaskError; readonly delayMs: number })
  | (Settled & {
      readonly action: 'released';
      /** Null: ready at once. */
      readonly delayMs: number | null;
      /** Throttling sends it back: the store keeps since when that is why it waits. */
      readonly isThrottled: boolean;
    });

/** What one call came to, or tasks for which none was made: recorded whole or not at all. */
export interface Settlement {
  readonly call: CallEnd | WithdrawnCall | null;
  readonly outcomes: readonly TaskOutcome[];
}

/** The call of a settlement, where one was made. */
export function madeCall({ call }: Pick<Settlement, 'call'>): CallEnd | null {
  return call === null || 'isWithdrawn' in call ? null : call;
}

/** Whose answer a task took. */
export type SharedFrom = 'run' | 'earlier_run';
