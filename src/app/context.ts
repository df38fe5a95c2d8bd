/** Everything ambient a command may touch, handed in by `cli.ts`, so that tests can run a command in-process. */
import type { Readable } from 'node:stream';
import type { Clock, Random } from '../core/clock.js';
import type { TerminalStream } from '../ui/frame-terminal.js';
import type { Interrupts } from './interrupts.js';

export interface CommandContext {
  readonly stdin: Readable;
  /** Data only. */
  readonly stdout: TerminalStream;
  /** Progress, notices and errors. */
  readonly stderr: TerminalStream;
  /**
   * A copy of the environment, to which a trusted `.env` adds what is not set; keys are taken out of the process's own
   * by `takeSecret`.
   */
  readonly environment: Record<string, string | undefined>;
  /** Reads a variable that holds a key and removes it from the process's environment, so that neither children nor crash reports inherit it. */
  readonly takeSecret: (name: string) => string | undefined;
  /** Makes the commands in a sentence for people those that this user types. */
  readonly command: (sentence: string) => string;
  readonly workingFolder: string;
  readonly processId: number;
  readonly hostName: string;
  readonly clock: Clock;
  /** What may have a thread of its own has one, which goes by the system's clock. */
  readonly hasThreads: boolean;
  readonly random: Random;
  readonly interrupts: Interrupts;
}
