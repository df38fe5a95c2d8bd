/** Faults at a system call of our choice, and records of all of them, by strace. */
import { closeSync, openSync, readSync } from 'node:fs';

export type SystemCall = 'pwrite64' | 'fsync' | 'fcntl' | 'ftruncate' | 'link' | 'rename' | 'unlink';

export interface Injection {
  readonly call: SystemCall;
  /** `signal=SIGKILL`, `error=ENOSPC`, … */
  readonly fault: string;
  /** `7` for the seventh call of a thread, `7+` for that and every later one. */
  readonly when: string;
}

/**
 * The beginning of a command line that notes each such call. Strace counts the calls of each thread by themselves, so
 * that Node's pool of threads, which syncs files, is given one alone.
 */
export function counting(call: SystemCall, tracePath: string): readonly string[] {
  return [
    ...['env', 'UV_THREADPOOL_SIZE=1'],
    ...['strace', '-f', '-qq', '-o', tracePath, '-e', `trace=${call}`],
  ];
}

/** The beginning of a command line that makes a system call fail, or kills at its entry. */
export function injecting({ call, fault, when }: Injection, tracePath: string): readonly string[] {
  return [...counting(call, tracePath), '-e', `inject=${call}:${fault}:when=${when}`];
}

/** The beginning of a command line that records calls with their files and every byte they write. */
export function recording(calls: readonly string[], tracePath: string): readonly string[] {
  const longestString = String(1 << 22);
  return [
    'strace',
    '-f',
    '-qq',
    '-o',
    tracePath,
    '-y',
    '-xx',
    '-s',
    longestString,
    '-e',
    `trace=${calls.join(',')}`,
  ];
}

const LINE_FEED = 10;

/** Line by line, since such records are large; latin1, since every byte that is not ASCII stands as \xHH. */
export function* traceLines(path: string): Generator<string> {
  const file = openSync(path, 'r');
  try {
    const chunk = Buffer.alloc(1 << 20);
    let rest: Buffer = Buffer.alloc(0);
    for (;;) {
      const length = readSync(file, chunk, 0, chunk.length, null);
      if (length === 0) break;
      rest = Buffer.concat([rest, chunk.subarray(0, length)]);
      let start = 0;
      for (let end = rest.indexOf(LINE_FEED); end !== -1; end = rest.indexOf(LINE_FEED, start)) {
        yield rest.toString('latin1', start, end);
        start = end + 1;
      }
      rest = rest.subarray(start);
    }
    if (rest.length > 0) yield rest.toString('latin1');
  } finally {
    closeSync(file);
  }
}

/** How often a fault was injected, or a process killed, by strace and nobody else. */
export function faultsIn(tracePath: string): {
  readonly calls: number;
  readonly injected: number;
  readonly killed: boolean;
} {
  let calls = 0;
  let injected = 0;
  let killed = false;
  for (const line of traceLines(tracePath)) {
    if (line.includes('(INJECTED)')) injected += 1;
    if (line.includes('+++ killed by SIGKILL')) killed = true;
    else if (!line.includes('resumed>')) calls += 1;
  }
  return { calls, injected, killed };
}
