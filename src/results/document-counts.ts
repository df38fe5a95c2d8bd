/** The documents of a run by state, as JSON tells of them. A contract with scripts: fields are added, never renamed. */
import type { TaskCounts } from '../core/task.js';

/** What waits to be tried again is pending as well. */
export function documentCounts(counts: TaskCounts) {
  const { ready, delayed, in_progress, completed, failed, cancelled } = counts;
  const pending = ready + delayed;
  return {
    total: pending + in_progress + completed + failed + cancelled,
    ...{ pending, in_progress, completed, failed, cancelled },
  };
}
