// What the benchmarks have in common: an input, and the two programs that send it.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CLI } from './simulator.mjs';

/** @returns the path of a file of that many documents */
export function writeDocuments(folder, count, textOf) {
  const path = join(folder, 'input.jsonl');
  const lines = Array.from({ length: count }, (_, index) =>
    JSON.stringify({ id: `d${index}`, text: textOf(index) }),
  );
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

/** Arguments of Node for the loop that a user would write. */
export function plainLoop({ url, input, folder, concurrency }) {
  const loop = fileURLToPath(new URL('plain-loop.mjs', import.meta.url));
  return [loop, url, input, join(folder, 'loop.jsonl'), String(concurrency)];
}

/** Arguments of Node for a run with a store and results of its own. */
export function ourRun({ url, input, folder, name }, ...flags) {
  const places = ['--db', join(folder, `${name}.db`), '-o', join(folder, `${name}.jsonl`)];
  return [CLI, 'run', input, '--base-url', url, ...places, '--quiet', ...flags];
}

/**
 * Runs Node to its end.
 * @returns wall time, and the operating system's own account of the child: user and system time together
 */
export function timed(args) {
  const startedAt = performance.now();
  const { status, stderr } = spawnSync(
    '/usr/bin/env',
    ['bash', '-c', 'TIMEFORMAT="%U %S"; time "$@"', 'time', process.execPath, ...args],
    { encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`exit ${status}: ${stderr}`);
  const [user, system] = stderr.trimEnd().split('\n').at(-1).split(' ').map(Number);
  return { cpuSeconds: user + system, wallSeconds: (performance.now() - startedAt) / 1_000 };
}

export function medianOf(figures) {
  return figures.toSorted((one, other) => one - other)[Math.floor(figures.length / 2)];
}
