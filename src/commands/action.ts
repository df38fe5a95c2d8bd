import type { Command } from 'commander';
import type { CommandContext } from '../app/context.js';
import type { ExitCode } from '../core/errors.js';

/** A verb as it was typed, and all that it may touch. */
export interface Verb {
  readonly command: Command;
  readonly context: CommandContext;
}

/** Makes the function of a verb a commander action that keeps its exit code. */
export type Action = <Arguments extends unknown[]>(
  perform: (verb: Verb, ...args: Arguments) => Promise<ExitCode>,
) => (this: Command, ...args: Arguments) => Promise<void>;
