/** What a run's state and its input are called wherever they are shown. */
import type { RunRecord } from '../core/run.js';

export function stateWord({ status }: RunRecord): string {
  return status === 'open' ? 'stopped' : status;
}

/** @param path as the run keeps it, or as the user gave it */
export function inputWords(path: string): string {
  return path === '-' ? 'standard input' : path;
}
