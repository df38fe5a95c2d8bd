/** Runs: one input and one set of settings. Called inside a transaction of the store. */
import type { NewRun, RunChange, RunObservation, RunRecord } from '../../core/run.js';
import { type RunRow, toRun } from '../rows.js';
import { runMissing, runNameTaken } from '../run-errors.js';
import { storableInteger, storableIntegerOrNull } from '../storable.js';
import type { Transaction } from './connections.js';
import { isUniqueViolation } from './errors.js';

const COLUMNS = `id, name, status, input_path, simulated, created_at_ms, stopped_at_ms, halt_reason,
  output_paths_json, settings_json`;

type StoredRun = Omit<RunRow, 'observations_json'>;

interface ObservationRow {
  run_id: number;
  kind: string;
  subject: string;
  value_json: string;
}

/** A store on a server lies in no folder. */
const FOLDER = null;

export async function createRun(transaction: Transaction, run: NewRun): Promise<RunRecord> {
  try {
    const created = await transaction.one<{ id: number }>(
      `INSERT INTO runs (name, status, input_path, simulated, settings_json, created_at_ms)
       VALUES ($1, 'importing', $2, $3, $4, $5) RETURNING id`,
      run.name,
      run.inputPath,
      run.simulated ? 1 : 0,
      JSON.stringify(run.settings),
      storableInteger(run.createdAtMs),
    );
    return await getRun(transaction, created?.id ?? 0);
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw runNameTaken(run.name);
  }
}

export async function getRun(transaction: Transaction, runId: number): Promise<RunRecord> {
  const [run] = await runsOf(transaction, 'id = $1 AND deleted = 0', runId);
  if (run === undefined) throw runMissing(runId);
  return run;
}

/** Newest first. */
export function listRuns(transaction: Transaction): Promise<RunRecord[]> {
  return runsOf(transaction, 'deleted = 0');
}

async function runsOf(transaction: Transaction, where: string, ...runId: number[]): Promise<RunRecord[]> {
  const rows = await transaction.all<StoredRun>(
    `SELECT ${COLUMNS} FROM runs WHERE ${where} ORDER BY id DESC`,
    ...runId,
  );
  const observations = await transaction.all<ObservationRow>(
    `SELECT run_id, kind, subject, value_json FROM run_observations
     WHERE run_id IN (SELECT json_array_elements_text($1)::bigint) ORDER BY kind, subject`,
    rows.map(({ id }) => id),
  );
  return rows.map((row) => {
    const own = observations.filter(({ run_id }) => run_id === row.id);
    const listed = own.map(({ kind, subject, value_json }) => [kind, subject, value_json]);
    return toRun({ ...row, observations_json: JSON.stringify(listed) }, FOLDER);
  });
}

/** Whoever changes a run waits for others that do. @throws LlmBatchError RUN_MISSING */
export async function lockRun(transaction: Transaction, runId: number): Promise<{ readonly name: string }> {
  const run = await transaction.one<{ name: string }>(
    'SELECT name FROM runs WHERE id = $1 AND deleted = 0 FOR UPDATE',
    runId,
  );
  if (run === undefined) throw runMissing(runId);
  return run;
}

export async function updateRun(
  transaction: Transaction,
  runId: number,
  change: RunChange,
): Promise<RunRecord> {
  await lockRun(transaction, runId);
  const run = { ...(await getRun(transaction, runId)), ...change };
  await transaction.run(
    `UPDATE runs SET status = CASE status WHEN 'cancelled' THEN status ELSE $1 END, settings_json = $2, stopped_at_ms = $3, halt_reason = $4, output_paths_json = $5
     WHERE id = $6`,
    run.status,
    JSON.stringify(run.settings),
    storableIntegerOrNull(run.stoppedAtMs),
    run.haltReason,
    JSON.stringify([...run.outputPaths, ...run.writtenFiles]),
    runId,
  );
  return getRun(transaction, runId);
}

/** What is noted of one kind and subject takes the place of what was noted before. */
export async function noteObservations(
  transaction: Transaction,
  runId: number,
  observations: readonly RunObservation[],
): Promise<void> {
  await lockRun(transaction, runId);
  const noted = observations.map(({ kind, subject, value }) => ({
    ...{ kind, subject },
    value_json: value === null ? null : JSON.stringify(value),
  }));
  await transaction.run(
    `DELETE FROM run_observations USING json_to_recordset($2) AS noted (kind text, subject text)
     WHERE run_id = $1 AND run_observations.kind = noted.kind AND run_observations.subject = noted.subject`,
    runId,
    noted,
  );
  await transaction.run(
    `INSERT INTO run_observations (run_id, kind, subject, value_json)
     SELECT $1, kind, subject, value_json FROM json_to_recordset($2) AS noted (kind text, subject text, value_json text)
     WHERE value_json IS NOT NULL
     ON CONFLICT (run_id, kind, subject) DO UPDATE SET value_json = excluded.value_json`,
    runId,
    noted,
  );
}

/** A finished run has open tasks again. */
export async function reopenRun(transaction: Transaction, runId: number): Promise<void> {
  await transaction.run(`UPDATE runs SET status = 'open' WHERE id = $1 AND status = 'finished'`, runId);
}

/** Asked once a statement. */
export function runIsThere(runId: string): string {
  return `EXISTS (SELECT 1 FROM runs WHERE id = ${runId} AND deleted = 0)`;
}

export async function runExists(transaction: Transaction, runId: number): Promise<boolean> {
  return (await transaction.one(`SELECT 1 WHERE ${runIsThere('$1')}`, runId)) !== undefined;
}

export async function cancelRun(transaction: Transaction, runId: number): Promise<void> {
  await lockRun(transaction, runId);
  await transaction.run(
    `UPDATE runs SET status = 'cancelled', stopped_at_ms = now_ms(), halt_reason = NULL WHERE id = $1`,
    runId,
  );
}

/** Marks a run as deleted: from here on nothing finds it, and its idempotency key is free as its name is. */
export async function deleteRun(transaction: Transaction, runId: number): Promise<void> {
  await transaction.run('UPDATE runs SET deleted = 1 WHERE id = $1', runId);
  await transaction.run('DELETE FROM served_runs WHERE run_id = $1', runId);
}
