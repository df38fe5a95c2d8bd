#!/usr/bin/env node
/** Entry: build the program, parse, map an error to its exit code. The only place that ends the process. */
import { hostname } from 'node:os';
import { CommanderError } from 'commander';
import type { CommandContext } from './commands/context.js';
import { Interrupts } from './commands/interrupts.js';
import { buildProgram } from './commands/program.js';
import { systemClock, systemRandom } from './core/clock.js';
import { EXIT_CODES, LlmBatchError } from './core/errors.js';
import { gateStream } from './core/terminal-gate.js';
import { outputError } from './results/output-error.js';
import { appearanceOf } from './ui/colours.js';
import { renderError } from './ui/error.js';

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
  workingFolder: process.cwd(),
  processId: process.pid,
  hostName: hostname(),
  clock: systemClock,
  random: systemRandom,
  interrupts,
};

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (!interrupts.raise()) process.exit(EXIT_CODES.interrupted);
  });
}
// A reader that goes away (`| head`) is no error of ours. Whatever else goes wrong must not cut off calls that are
// open: whoever writes much has it told to himself, and for what was written and left alone it is told at the end.
let hasReported = false;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') return;
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
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_CODES.completed : EXIT_CODES.usage;
  const appearance = appearanceOf(process.stderr, context.environment, !process.argv.includes('--no-color'));
  const lines = renderError(error, appearance, process.argv.includes('--debug'));
  process.stderr.write(`${lines.join('\n')}\n`);
  return error instanceof LlmBatchError ? error.exitCode : EXIT_CODES.unexpected;
}
