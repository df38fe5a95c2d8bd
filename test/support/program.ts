/** The program as a user runs it: the compiled entry in a process of its own, in a folder of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const CLI_PATH = join(import.meta.dirname, '..', '..', 'dist', 'cli.js');

export interface ProgramOptions {
  readonly folder: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** What it reads from standard input; nothing when absent. */
  readonly input?: string;
  /** The test writes to `child.stdin` and ends it itself. */
  readonly keepStdinOpen?: boolean;
  /** A program that hangs is killed after this; its test then fails on the exit code. */
  readonly deadlineMs?: number;
  /** Wraps the command, e.g. `['strace', '-f', …]`. */
  readonly wrapper?: readonly string[];
  /** A process group of its own, so that a signal can be sent to all of it. */
  readonly detached?: boolean;
}

export interface ProgramEnd {
  /** Null when a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningProgram {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly ended: Promise<ProgramEnd>;
  kill(signal: NodeJS.Signals): void;
}

export function startProgram(args: readonly string[], options: ProgramOptions): RunningProgram {
  const [command = process.execPath, ...wrapped] = [
    ...(options.wrapper ?? []),
    process.execPath,
    CLI_PATH,
    ...args,
  ];
  const child = spawn(command, wrapped, {
    cwd: options.folder,
    env: { PATH: process.env['PATH'], HOME: options.folder, NO_COLOR: '1', ...options.environment },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: options.detached ?? false,
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  // A program that does not read its input closes it early.
  child.stdin.on('error', () => undefined);
  if (!options.keepStdinOpen) child.stdin.end(options.input ?? '');
  const deadline = setTimeout(() => child.kill('SIGKILL'), options.deadlineMs ?? 60_000);
  const ended = new Promise<ProgramEnd>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (exitCode, signal) => {
      clearTimeout(deadline);
      resolve({ exitCode, signal, stdout, stderr });
    });
  });
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    ended,
    kill(signal) {
      if (options.detached && child.pid !== undefined) process.kill(-child.pid, signal);
      else child.kill(signal);
    },
  };
}

export function runProgram(args: readonly string[], options: ProgramOptions): Promise<ProgramEnd> {
  return startProgram(args, options).ended;
}

/** A temporary folder, removed by `remove`. */
export function temporaryFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'llm-batch-test-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Lines of JSON text as values. */
export function jsonLines<Value = Record<string, unknown>>(text: string): Value[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Value);
}
