/** Runs: one input and one set of settings. */
import type { NewRun, RunChange, RunObservation, RunRecord } from '../../core/run.js';
import { type ObservationRow, type RunRow, toRun } from '../rows.js';
import { runMissing, runNameTaken } from '../run-errors.js';
import { storableInteger, storableIntegerOrNull } from '../storable.js';
import { type StorePlace, toStoredPath } from '../stored-path.js';
import { idsIn } from './parts.js';
import type { DocumentStore } from './reimports.js';
import { all, one, run, type Steps, together } from './steps.js';

const COLUMNS = `id, name, status, input_path, simulated, created_at_ms, stopped_at_ms, halt_reason,
  output_paths_json, settings_json`;

/** @throws LlmBatchError RUN_NAME_TAKEN */
export function* createRun(place: StorePlace, created: NewRun): Steps<RunRecord> {
  const { name, inputPath, simulated, settings, createdAtMs } = created;
  const inserted = yield* one<{ id: number }>(
    `INSERT INTO runs (name, status, input_path, simulated, settings_json, created_at_ms)
     VALUES ($1, 'importing', $2, $3, $4, $5) ON CONFLICT DO NOTHING RETURNING id`,
    ...[name, toStoredPath(inputPath, place), simulated ? 1 : 0, JSON.stringify(settings)],
    storableInteger(createdAtMs),
  );
  if (inserted === undefined) throw runNameTaken(name);
  return yield* getRun(place, inserted.id);
}

/** @throws LlmBatchError RUN_MISSING */
function* getRun(place: StorePlace, runId: number): Steps<RunRecord> {
  const [found] = yield* runsWhere(place, 'id = $1 AND deleted = 0', runId);
  if (found === undefined) throw runMissing(runId);
  return found;
}

/** Newest first. */
export function listRuns(place: StorePlace): Steps<RunRecord[]> {
  return runsWhere(place, 'deleted = 0');
}

function* runsWhere({ folder }: StorePlace, where: string, ...runId: number[]): Steps<RunRecord[]> {
  const rows = yield* all<RunRow>(`SELECT ${COLUMNS} FROM runs WHERE ${where} ORDER BY id DESC`, ...runId);
  const observations = yield* all<ObservationRow>(
    `SELECT run_id, kind, subject, value_json FROM run_observations
     WHERE run_id IN ${idsIn('$1')} ORDER BY kind, subject`,
    rows.map(({ id }) => id),
  );
  const ofRun = new Map<number, ObservationRow[]>(rows.map(({ id }) => [id, []]));
  for (const observation of observations) ofRun.get(observation.run_id)?.push(observation);
  return rows.map((row) => toRun(row, ofRun.get(row.id) ?? [], folder));
}

/**
 * Whoever changes a run, or submits to it, waits for others that do: room and keys are counted by one after the other.
 * @throws LlmBatchError RUN_MISSING
 */
export function* lockRun(runId: number): Steps<Pick<RunRow, 'name' | 'status'>> {
  const found = yield* one<Pick<RunRow, 'name' | 'status'>>(
    'SELECT name, status FROM runs WHERE id = $1 AND deleted = 0 FOR UPDATE',
    runId,
  );
  if (found === undefined) throw runMissing(runId);
  return found;
}

export function* updateRun(
  place: StorePlace,
  documents: DocumentStore,
  runId: number,
  change: RunChange,
): Steps<RunRecord> {
  yield* lockRun(runId);
  if (change.status !== undefined && change.status !== 'importing') yield* documents.settle(runId);
  const changed = { ...(yield* getRun(place, runId)), ...change };
  yield* run(
    `UPDATE runs SET status = CASE status WHEN 'cancelled' THEN status ELSE $1 END, settings_json = $2,
       stopped_at_ms = $3, halt_reason = $4, output_paths_json = $5 WHERE id = $6`,
    ...[changed.status, JSON.stringify(changed.settings), storableIntegerOrNull(changed.stoppedAtMs)],
    changed.haltReason,
    JSON.stringify([
      ...changed.outputPaths.map((path) => toStoredPath(path, place)),
      ...changed.writtenFiles.map((file) => ({ ...file, path: toStoredPath(file.path, place) })),
    ]),
    runId,
  );
  return yield* getRun(place, runId);
}

/** What is noted of one kind and subject takes the place of what was noted before. */
export function* noteObservations(runId: number, observations: readonly RunObservation[]): Steps<void> {
  yield* lockRun(runId);
  yield* together(...observations.map((observation) => noteObservation(runId, observation)));
}

function noteObservation(runId: number, { kind, subject, value }: RunObservation): Steps<number> {
  if (value === null) {
    return run(
      'DELETE FROM run_observations WHERE run_id = $1 AND kind = $2 AND subject = $3',
      runId,
      kind,
      subject,
    );
  }
  return run(
    `INSERT INTO run_observations (run_id, kind, subject, value_json) VALUES ($1, $2, $3, $4)
     ON CONFLICT (run_id, kind, subject) DO UPDATE SET value_json = excluded.value_json`,
    runId,
    kind,
    subject,
    JSON.stringify(value),
  );
}

/** A finished run has open tasks again. */
export function* reopenRun(runId: number): Steps<void> {
  yield* run(`UPDATE runs SET status = 'open' WHERE id = $1 AND status = 'finished'`, runId);
}

/** Asked once a statement. */
export function runIsThere(runId: string): string {
  return `EXISTS (SELECT 1 FROM runs WHERE id = ${runId} AND deleted = 0)`;
}

export function* runExists(runId: number): Steps<boolean> {
  return (yield* one(`SELECT 1 WHERE ${runIsThere('$1')}`, runId)) !== undefined;
}

export function* cancelRun(runId: number): Steps<void> {
  yield* lockRun(runId);
  yield* run(
    `UPDATE runs SET status = 'cancelled', stopped_at_ms = wall_ms(), halt_reason = NULL WHERE id = $1`,
    runId,
  );
}

/** Marks a run as deleted: from here on nothing finds it, and its idempotency key is free as its name is. */
export function* deleteRun(runId: number): Steps<void> {
  yield* run('UPDATE runs SET deleted = 1 WHERE id = $1', runId);
  yield* run('DELETE FROM served_runs WHERE run_id = $1', runId);
}
