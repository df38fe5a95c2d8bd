/** A command run inside the test, where time and chance can be handed in; for all else there is program.ts. */
import { PassThrough } from 'node:stream';
import { CommanderError } from 'commander';
import { Interrupts } from '../../src/app/interrupts.js';
import { wayOutOf } from '../../src/commands/error-words.js';
import { buildProgram } from '../../src/commands/program.js';
import { type Clock, type Random, systemClock } from '../../src/core/clock.js';
import { EXIT_CODES, LlmBatchError } from '../../src/core/errors.js';
import { commandsAsTyped } from '../../src/ui/next-command.js';
import type { ProgramEnd } from './program.js';

export interface InProcessOptions {
  readonly folder: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  /** Default 0: every back-off is its shortest. */
  readonly random?: Random;
  /** As the user at the keyboard raises them. */
  readonly interrupts?: Interrupts;
  /** Told of each piece that the command says to people, as it says it. */
  readonly onStderr?: (text: string) => void;
  /** What a user types at a terminal; without it there is none. */
  readonly typed?: string;
}

/** Errors that the program would report end it with their exit code and message; all others are thrown. */
export async function runInProcess(
  args: readonly string[],
  options: InProcessOptions,
): Promise<Omit<ProgramEnd, 'signal'>> {
  const clock = options.clock ?? systemClock;
  const environment = { HOME: options.folder, NO_COLOR: '1', ...options.environment };
  const stdin = Object.assign(new PassThrough(), { isTTY: options.typed !== undefined });
  stdin.end(options.typed);
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const write = stderr.write.bind(stderr);
  stderr.write = (chunk: unknown, ...rest: never[]) => {
    options.onStderr?.(String(chunk));
    return write(chunk, ...rest);
  };
  // Read as it comes: a reader that waited for the end would hold the writer up for ever.
  const texts = new Map([stdout, stderr].map((stream) => [stream, collect(stream)]));
  const read = (stream: PassThrough): string => texts.get(stream)?.() ?? '';
  const command = commandsAsTyped(args, environment);
  const program = buildProgram({
    stdin,
    stdout,
    stderr,
    environment,
    takeSecret: (name) => (environment as Record<string, string>)[name],
    command,
    workingFolder: options.folder,
    processId: process.pid,
    hostName: 'here',
    clock,
    hasThreads: false,
    random: options.random ?? (() => 0),
    interrupts: options.interrupts ?? new Interrupts(clock),
  });
  try {
    const exitCode = await program.run(['node', 'llm-batch', ...args]);
    return { exitCode, stdout: read(stdout), stderr: read(stderr) };
  } catch (error) {
    if (error instanceof LlmBatchError) {
      return {
        exitCode: error.exitCode,
        stdout: read(stdout),
        stderr: `${read(stderr)}${error.message}\n${command(wayOutOf(error) ?? '')}\n`,
      };
    }
    if (!(error instanceof CommanderError)) throw error;
    return { exitCode: EXIT_CODES.usage, stdout: read(stdout), stderr: read(stderr) };
  }
}

function collect(stream: PassThrough): () => string {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => {
    for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) chunks.push(chunk);
    return Buffer.concat(chunks).toString('utf8');
  };
}
