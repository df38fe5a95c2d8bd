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
  /** One sentence that says what to do, whoever reads it: what only a terminal has (flags) is not in it. */
  readonly hint?: string;
  readonly facts?: ErrorFacts;
  readonly cause?: unknown;
}

/** What the way out depends on; whoever speaks to the user makes the words (`commands/error-words.ts`). */
export type ErrorFacts = Readonly<Record<string, string | number | boolean | null>>;

/** What the words for the way out are made of. */
export interface WayOut {
  readonly code: string;
  readonly facts: ErrorFacts;
  readonly hint: string | undefined;
}

/** An error a user can cause or must hear of: `message` says what and where, `hint` or the words for `code` the way out. */
export class LlmBatchError extends Error implements WayOut {
  readonly code: string;
  readonly exitCode: ExitCode;
  readonly hint: string | undefined;
  readonly facts: ErrorFacts;

  constructor(message: string, options: LlmBatchErrorOptions) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = 'LlmBatchError';
    this.code = options.code;
    this.exitCode = options.exitCode;
    this.hint = options.hint;
    this.facts = options.facts ?? {};
  }
}

/**
 * A usage or input error: exit 2, no call was made.
 * @param wayOut a hint, or the facts that one is made of
 */
export function usageError(code: string, message: string, wayOut?: string | ErrorFacts): LlmBatchError {
  const more = typeof wayOut === 'string' ? { hint: wayOut } : { facts: wayOut ?? {} };
  return new LlmBatchError(message, { code, exitCode: EXIT_CODES.usage, ...more });
}
