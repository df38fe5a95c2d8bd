import type { ExitCode } from '../core/errors.js';

/** Wraps a command's function as a commander action that keeps its exit code. */
export type Action = <Arguments extends unknown[]>(
  perform: (...args: Arguments) => Promise<ExitCode>,
) => (...args: Arguments) => Promise<void>;
