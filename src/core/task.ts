/**
 * The states of a task as the store keeps them. Users see `pending` for ready and delayed together.
 *
 *   ready ──claim──▶ in_progress ──settle──▶ completed | failed
 *     ▲                  │
 *     │                  ├─ release (throttled, stopped: no attempt used) ─▶ ready | delayed
 *     │                  ├─ retry (attempt used, back-off) ───────────────▶ delayed
 *     │                  └─ rescue (its worker died) ─────────────────────▶ ready | failed (poison)
 *     ├──promote── delayed
 *     └──retry command── failed           ready | delayed | in_progress ──cancel──▶ cancelled
 */
export const TASK_STATES = ['ready', 'delayed', 'in_progress', 'completed', 'failed', 'cancelled'] as const;

export type TaskState = (typeof TASK_STATES)[number];

export type TaskCounts = Readonly<Record<TaskState, number>>;
