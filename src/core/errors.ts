/**
 * What the user or this program did wrong. What a provider did is a `ProviderFailure` (failure.ts), and a
 * task that failed is a value, not an exception.
 */

/** Process exit codes; the table users see is in the README. */
export const EXIT_CODES = {
  completed: 0,
  unexpected: 1,
  usage: 2,
  someFailed: 3,
  halted: 4,
  store: 5,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT_CODES)[keyof typeof EXIT_CODES];

export interface LlmBatchErrorOptions {
  /** Stable, upper-case, e.g. `STORE_NEWER_SCHEMA`. */
  readonly code: string;
  readonly exitCode: ExitCode;
  /** One sentence that says what to do. */
  readonly hint?: string;
  readonly cause?: unknown;
}

/** An error a user can cause or must hear of: `message` says what and where, `hint` the way out. */
export class LlmBatchError extends Error {
  readonly code: string;
  readonly exitCode: ExitCode;
  readonly hint: string | undefined;

  constructor(message: string, options: LlmBatchErrorOptions) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = 'LlmBatchError';
    this.code = options.code;
    this.exitCode = options.exitCode;
    this.hint = options.hint;
  }
}

/** A usage or input error: exit 2, no call was made. */
export function usageError(code: string, message: string, hint?: string): LlmBatchError {
  return new LlmBatchError(message, {
    code,
    exitCode: EXIT_CODES.usage,
    ...(hint === undefined ? {} : { hint }),
  });
}
