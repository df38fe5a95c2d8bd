/** A few documents of a run to try a prompt on, before the whole is paid for. Nothing of the choice is stored. */
import type { Choice } from '../core/event.js';
import type { TaskPlace } from '../core/task.js';
import type { Store } from '../store/store.js';

const PAGE_TASKS = 10_000;

/**
 * The first documents, or one by chance of each of so many equal stretches of the input: the same ones each time as long as
 * the input has as many documents, under whatever name and prompt, so that tries can be compared.
 * @returns ids of tasks in input order; all of them where there are no more
 */
export async function chooseTasks(store: Store, runId: number, { by, count }: Choice): Promise<number[]> {
  const places: TaskPlace[] = [];
  let page: readonly TaskPlace[];
  do {
    page = await store.listTasks(runId, places.at(-1)?.taskId ?? 0, PAGE_TASKS);
    places.push(...page);
  } while (page.length > 0);
  const taskIds = places.sort((one, other) => one.line - other.line).map(({ taskId }) => taskId);
  if (by === 'limit' || count >= taskIds.length) return taskIds.slice(0, count);
  return Array.from({ length: count }, (_, index) => {
    const start = Math.floor((index * taskIds.length) / count);
    const end = Math.floor(((index + 1) * taskIds.length) / count);
    return taskIds[start + Math.floor(scattered(index) * (end - start))] as number;
  });
}

/** A number from 0 up to 1 for a whole number, with no visible order among neighbours: the golden ratio's sequence. */
function scattered(index: number): number {
  return ((index + 1) * 0.618_033_988_749_895) % 1;
}
