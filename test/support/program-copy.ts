/** Copies of the compiled program with something broken on purpose, to see whether anybody notices. */
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CLI_PATH } from './program.js';

const DIST = dirname(CLI_PATH);
const ROOT = dirname(DIST);
const INSTEAD_PATH = join(import.meta.dirname, 'instead.mjs');
const FAILPOINTS_PATH = join(import.meta.dirname, 'failpoints.mjs');

/** One text of one compiled file that becomes another; it must stand there exactly once. */
export interface Patch {
  /** Under `dist`. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** The program as it is. */
export const WHOLE_PROGRAM: ProgramUnderTest = { dist: DIST };

export interface ProgramUnderTest {
  readonly dist: string;
}

/**
 * Copies the program into a folder and breaks the copy.
 * @throws when a patch does not fit: a mutant that is no mutant proves nothing
 */
export function patchedProgram(folder: string, patches: readonly Patch[]): ProgramUnderTest {
  mkdirSync(folder, { recursive: true });
  const dist = join(folder, 'dist');
  cpSync(DIST, dist, { recursive: true });
  cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  for (const { file, from, to } of patches) {
    const path = join(dist, file);
    const parts = readFileSync(path, 'utf8').split(from);
    if (parts.length !== 2) throw new Error(`${file} holds ${parts.length - 1} times: ${from}`);
    writeFileSync(path, parts.join(to));
  }
  return { dist };
}

/** The beginning of a command line that runs this program in place of the usual one. */
export function runInstead(program: ProgramUnderTest): readonly string[] {
  return program === WHOLE_PROGRAM ? [] : [process.execPath, INSTEAD_PATH, join(program.dist, 'cli.js')];
}

/** The same, with what failpoints.mjs does to it when it reaches a point for the `count`th time. */
export function runUntil(program: ProgramUnderTest, point: string, count: number): readonly string[] {
  return [process.execPath, FAILPOINTS_PATH, program.dist, point, String(count)];
}
