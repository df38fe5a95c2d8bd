/** Puts the tasks of dead workers back and ends their open calls as lost. */
import { blameOf } from '../crash-blame.js';
import type { RescueReport } from '../store.js';
import { loseCallsOf, type SumLost } from './calls-underway.js';
import { idsIn, removeResults, UNOWNED } from './parts.js';
import { all, run, type Steps } from './steps.js';
import { forgetWorkers, lockDeadWorkers } from './workers.js';

interface OwnedRow {
  id: number;
  worker_id: number;
  crash_count: number;
  lone_crash_count: number;
}

/** See the port. */
export function* rescueTasks(
  { crashLimit, workers: names }: { readonly crashLimit: number; readonly workers?: readonly string[] },
  sumLost: SumLost,
): Steps<RescueReport> {
  const dead = yield* lockDeadWorkers(names ?? null);
  if (dead.length === 0) return { rescued: 0, lostCalls: 0, poisoned: 0 };
  const ids = dead.map(({ id }) => id);
  const lost = yield* loseCallsOf(ids, sumLost);
  const open = new Set(lost.tasks.map(({ workerId, taskId }) => `${workerId} ${taskId}`));
  const spared = new Set(dead.filter(({ askedToStop }) => askedToStop === 1).map(({ id }) => id));
  const owned = yield* all<OwnedRow>(
    `SELECT id, worker_id, crash_count, lone_crash_count FROM tasks INDEXED BY tasks_owned
     WHERE worker_id IN ${idsIn('$1')} ORDER BY id FOR NO KEY UPDATE`,
    ids,
  );
  const held = new Map<number, number>();
  for (const { worker_id } of owned) held.set(worker_id, (held.get(worker_id) ?? 0) + 1);
  const rescued = owned.map((task) => {
    const wasOpen = !spared.has(task.worker_id) && open.has(`${task.worker_id} ${task.id}`);
    const { crashes, poison } = blameOf(task, wasOpen, held.get(task.worker_id) === 1, crashLimit);
    const state = poison === null ? 'ready' : 'failed';
    return { task_id: task.id, state, kind: poison?.kind ?? null, message: poison?.message, ...crashes };
  });
  const poisoned = rescued.filter(({ kind }) => kind !== null);
  if (rescued.length > 0) {
    yield* run(
      `UPDATE tasks SET state = rescued.state, failure_kind = rescued.kind, crash_count = rescued.crash_count,
         lone_crash_count = rescued.lone_crash_count, ${UNOWNED}
       FROM json_to_recordset($1) AS rescued (task_id bigint, state text, kind text, crash_count bigint,
         lone_crash_count bigint) WHERE tasks.id = rescued.task_id`,
      rescued,
    );
  }
  if (poisoned.length > 0) {
    yield* removeResults(poisoned.map(({ task_id }) => task_id));
    yield* run(
      `INSERT INTO results (task_id, settled_at_ms, error_kind, error_message)
       SELECT task_id, wall_ms(), kind, message
       FROM json_to_recordset($1) AS poisoned (task_id bigint, kind text, message text)`,
      poisoned,
    );
  }
  yield* forgetWorkers(ids);
  return { rescued: owned.length - poisoned.length, lostCalls: lost.calls, poisoned: poisoned.length };
}
