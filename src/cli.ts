#!/usr/bin/env node
/** Entry: build the program, parse, map an error to its exit code. The only place that ends the process. */
import { closeSync } from 'node:fs';
import { hostname } from 'node:os';
import { isatty } from 'node:tty';
import { setFlagsFromString } from 'node:v8';
import { CommanderError } from 'commander';
import type { CommandContext } from './app/context.js';
import { Interrupts } from './app/interrupts.js';
import { wayOutOf } from './commands/error-words.js';
import { asksForJsonLog, buildProgram } from './commands/program.js';
import { systemClock, systemRandom } from './core/clock.js';
import { EXIT_CODES, LlmBatchError } from './core/errors.js';
import { gateStream } from './core/terminal-gate.js';
import { outputError } from './results/output-error.js';
import { isReaderGone } from './results/sink.js';
import { appearanceOf } from './ui/colours.js';
import { errorJson, renderError } from './ui/error.js';
import { commandsAsTyped } from './ui/next-command.js';

// Little is held and much passes through. Where the machine has much memory, V8 lets what is dead grow to several times
// what is alive before it looks: half as much is no slower here, and keeps the process small however long it runs.
setFlagsFromString('--heap-growing-percent=50');

for (const stream of [process.stdout, process.stderr]) gateStream(stream, showsColour(stream));

const interrupts = new Interrupts(systemClock);
const context: CommandContext = {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  environment: { ...process.env },
  takeSecret(name) {
    const value = context.environment[name];
    delete process.env[name];
    return value === '' ? undefined : value;
  },
  command: commandsAsTyped(process.argv, process.env),
  workingFolder: process.cwd(),
  processId: process.pid,
  hostName: hostname(),
  clock: systemClock,
  hasThreads: true,
  random: systemRandom,
  interrupts,
};

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    if (!interrupts.raise(signal)) process.exit(EXIT_CODES.interrupted);
  });
}
// A terminal that was closed takes nothing any more (EIO), a log whose reader has gone neither (EPIPE): what is told
// there is lost, the run is not.
process.stderr.on('error', () => undefined);
// At its end Node gives terminals their settings back, and aborts where one is gone. A closed descriptor it passes over.
const terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor));
process.on('exit', () => {
  for (const descriptor of terminals) if (!isatty(descriptor)) closeSync(descriptor);
});
// A reader that goes away (`| head`) is no error of ours. Whatever else goes wrong must not cut off calls that are
// open: whoever writes much has it told to himself, and for what was written and left alone it is told at the end.
let hasReported = false;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (isReaderGone(process.stdout, error)) return;
  process.once('beforeExit', () => {
    if (!hasReported) process.exitCode = report(outputError('standard output', error));
  });
});

/** For what would else be told by the runtime itself, past the gate. */
process.on('uncaughtException', (error) => process.exit(report(error)));

try {
  process.exitCode = await buildProgram(context).run(process.argv);
} catch (error) {
  process.exitCode = report(error);
}

function showsColour(stream: NodeJS.WriteStream): boolean {
  return appearanceOf(stream, process.env, !process.argv.includes('--no-color')).colours.level > 0;
}

function report(error: unknown): number {
  hasReported = true;
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT_CODES.completed;
  const exitCode =
    error instanceof CommanderError
      ? EXIT_CODES.usage
      : error instanceof LlmBatchError
        ? error.exitCode
        : EXIT_CODES.unexpected;
  if (asksForJsonLog(process.argv)) {
    process.stderr.write(`${errorJson(error, systemClock.now(), exitCode, context, wayOutOf)}\n`);
  } else if (!(error instanceof CommanderError)) {
    const hasColour = !process.argv.includes('--no-color');
    const appearance = appearanceOf(process.stderr, context.environment, hasColour, context.command);
    const lines = renderError(error, appearance, process.argv.includes('--debug'), wayOutOf);
    process.stderr.write(`${lines.join('\n')}\n`);
  }
  return exitCode;
}
