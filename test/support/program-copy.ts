/** Copies of the compiled program with something broken on purpose, to see whether anybody notices. */
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CLI_PATH } from './program.js';

const ROOT = dirname(dirname(CLI_PATH));
/** File for file as in `src`, where what is shipped is a bundle. */
const MODULES = join(ROOT, 'build');
const INSTEAD_PATH = join(import.meta.dirname, 'instead.mjs');
const FAILPOINTS_PATH = join(import.meta.dirname, 'failpoints.mjs');

/** One text of one compiled file that becomes another; it must stand there exactly once. */
export interface Patch {
  /** Under `build`. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** The program as it is. */
export const WHOLE_PROGRAM: ProgramUnderTest = { modules: MODULES };

export interface ProgramUnderTest {
  /** The folder of its compiled modules. */
  readonly modules: string;
}

/**
 * Copies the program into a folder and breaks the copy.
 * @throws when a patch does not fit: a mutant that is no mutant proves nothing
 */
export function patchedProgram(folder: string, patches: readonly Patch[]): ProgramUnderTest {
  mkdirSync(folder, { recursive: true });
  const modules = join(folder, 'build');
  cpSync(MODULES, modules, { recursive: true });
  cpSync(dirname(CLI_PATH), join(folder, 'dist'), { recursive: true });
  cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  for (const { file, from, to } of patches) {
    const path = join(modules, file);
    const parts = readFileSync(path, 'utf8').split(from);
    if (parts.length !== 2) throw new Error(`${file} holds ${parts.length - 1} times: ${from}`);
    writeFileSync(path, parts.join(to));
  }
  return { modules };
}

/** The beginning of a command line that runs this program in place of the usual one. */
export function runInstead(program: ProgramUnderTest): readonly string[] {
  return program === WHOLE_PROGRAM ? [] : [process.execPath, INSTEAD_PATH, join(program.modules, 'cli.js')];
}

/** The same, with what failpoints.mjs does to it when it reaches a point for the `count`th time. */
export function runUntil(program: ProgramUnderTest, point: string, count: number): readonly string[] {
  return [process.execPath, FAILPOINTS_PATH, program.modules, point, String(count)];
}
