/** What the death of a worker says of a task that it had in progress. */
import { errorWithoutCall, type TaskError } from '../core/outcome.js';

interface Crashes {
  readonly crash_count: number;
  readonly lone_crash_count: number;
}

export interface Blame {
  readonly crashes: Crashes;
  /** What the task failed with; null: it is tried again. */
  readonly poison: TaskError | null;
}

/**
 * A task whose call was open may have brought its worker down; only one that was alone besides can be blamed.
 * @param before the task's own, so far
 * @param isOnly the worker had no other in progress
 */
export function blameOf(before: Crashes, wasOpen: boolean, isOnly: boolean, crashLimit: number): Blame {
  const isAlone = wasOpen && isOnly;
  const crashes = {
    crash_count: before.crash_count + (wasOpen ? 1 : 0),
    lone_crash_count: before.lone_crash_count + (isAlone ? 1 : 0),
  };
  if (!isAlone || crashes.lone_crash_count < crashLimit) return { crashes, poison: null };
  const message = `The program died ${crashes.lone_crash_count} times while it worked on this document alone.`;
  return { crashes, poison: errorWithoutCall('poison', message) };
}
