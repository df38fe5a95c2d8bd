/** What a run's state and its input are called wherever they are shown. */
import { isAbsolute, relative } from 'node:path';
import { STANDARD_INPUT_NAME } from '../core/input-name.js';
import type { RunRecord } from '../core/run.js';

export function stateWord({ status }: RunRecord): string {
  return status === 'open' ? 'stopped' : status;
}

/** @param path as the run keeps it, or as the user gave it */
export function inputWords(path: string): string {
  return path === '-' ? STANDARD_INPUT_NAME : path;
}

/** As it is named in the working folder, where it lies inside. */
export function shownPath(path: string, workingFolder: string): string {
  const short = isAbsolute(path) ? relative(workingFolder, path) : path;
  return short === '' || short.startsWith('..') ? path : short;
}
