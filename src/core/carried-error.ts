/** Errors on their way to another thread, which gets a copy without their class and their own fields. */
import { LlmBatchError, type LlmBatchErrorOptions } from './errors.js';

export interface CarriedError {
  readonly isOurs: boolean;
  readonly message: string;
  readonly stack: string | undefined;
  readonly cause: CarriedError | null;
  /** `name`, `code` and what else it has. */
  readonly fields: object;
}

/** What can be sent of an error. */
export function packError(error: unknown): CarriedError {
  const { name, message, stack, cause, ...fields } =
    error instanceof Error ? error : new Error(String(error));
  return {
    isOurs: error instanceof LlmBatchError,
    message,
    stack,
    cause: cause === undefined ? null : packError(cause),
    fields: { ...fields, name },
  };
}

/** The error again: one of ours has its class, any other is known by its name and its code. */
export function unpackError({ isOurs, message, stack, cause, fields }: CarriedError): Error {
  const options = cause === null ? {} : { cause: unpackError(cause) };
  const error = isOurs
    ? new LlmBatchError(message, { ...(fields as LlmBatchErrorOptions), ...options })
    : new Error(message, options);
  return Object.assign(error, fields, { stack });
}
