/** What a run's state and its input are called wherever they are shown. */
import { isAbsolute, relative } from 'node:path';
import type { RunRecord } from '../core/run.js';

export function stateWord({ status }: RunRecord): string {
  return status === 'open' ? 'stopped' : status;
}

/** @param path as the run keeps it, or as the user gave it */
export function inputWords(path: string): string {
  return path === '-' ? 'standard input' : path;
}

/** As it is named in the working folder, where it lies inside. */
export function shownPath(path: string, workingFolder: string): string {
  const short = isAbsolute(path) ? relative(workingFolder, path) : path;
  return short === '' || short.startsWith('..') ? path : short;
}
