import type { Command } from 'commander';
import type { CommandContext } from '../app/context.js';
import type { ExitCode } from '../core/errors.js';

/** What the function of a verb is given besides its arguments and flags. */
export interface Call {
  readonly command: Command;
  readonly context: CommandContext;
}

/** Makes the function of a verb a commander action that keeps its exit code. */
export type Action = <Arguments extends unknown[]>(
  perform: (call: Call, ...args: Arguments) => Promise<ExitCode>,
) => (this: Command, ...args: Arguments) => Promise<void>;
