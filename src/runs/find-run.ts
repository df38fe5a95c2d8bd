/** Which run a user means. */
import { basename } from 'node:path';
import { type LlmBatchError, usageError } from '../core/errors.js';
import type { RunRecord } from '../core/run.js';
import { folderOfTextFiles } from '../input/input-files.js';
import type { Store } from '../store/store.js';
import { settingsOfRun } from './run-settings.js';

/**
 * The run that `run <input>` goes on with: the one of that name, else the one of that input. Of several, the one that
 * was not named by the user goes first: a `--name` of its own is asked for again by that name. A cancelled run is
 * found only where there is no other: to start a new one in its place would pay for its answers again.
 *
 * Another query of the same database is another input as likely as an edited one, so it goes on with a run only by name.
 * @throws LlmBatchError (exit 2) RUN_SIMULATED_MIX, RUN_OTHER_QUERY
 */
export async function findRunForInput(
  store: Store,
  wanted: {
    readonly name: string | null;
    readonly inputPath: string;
    /** Of a database; null for any other input. */
    readonly query: string | null;
    /** Of standard input, which is another input where it holds something else; absent: not known, or a file. */
    readonly inputSha256?: string | undefined;
    readonly simulated: boolean;
  },
): Promise<RunRecord | null> {
  const runs = await store.listRuns();
  if (wanted.name !== null) {
    const named = runs.find((run) => run.name === wanted.name) ?? null;
    if (named !== null && named.simulated !== wanted.simulated) {
      throw usageError(
        'RUN_SIMULATED_MIX',
        `Run '${named.name}' is ${named.simulated ? 'simulated' : 'real'}; simulated and real answers are never mixed.`,
      );
    }
    return named;
  }
  const ofPath = runs.filter(
    (run) => run.inputPath === wanted.inputPath && run.simulated === wanted.simulated,
  );
  const ofInput = ofPath.filter((run) => asks(run, wanted.query) && holds(run, wanted.inputSha256));
  const alive = ofInput.filter((run) => run.status !== 'cancelled');
  const found = alive.find((run) => givenName(run) === null) ?? alive[0] ?? ofInput[0] ?? null;
  const other = ofPath.find((run) => run.status !== 'cancelled');
  if (found !== null || other === undefined || wanted.query === null) return found;
  throw usageError(
    'RUN_OTHER_QUERY',
    `Run '${other.name}' of this database has another query: ${queryOf(other)}`,
    { run: other.name },
  );
}

/** A run whose import never began has asked nothing yet. */
function asks(run: RunRecord, query: string | null): boolean {
  const asked = queryOf(run);
  return query === null || asked === null || asked === query;
}

/** A run of an earlier version does not know what its input held. */
function holds(run: RunRecord, sha256: string | undefined): boolean {
  const { inputSha256 = sha256 } = settingsOfRun(run);
  return sha256 === undefined || inputSha256 === sha256;
}

function queryOf(run: RunRecord): string | null {
  const { input } = settingsOfRun(run);
  return input?.format === 'sqlite' ? input.query : null;
}

/** The name that the user gave a run; null where it has the one that `chooseRunName` gives. */
export function givenName(run: Pick<RunRecord, 'name' | 'inputPath' | 'simulated'>): string | null {
  const ownName = ownNameOf(run.inputPath, run.simulated);
  const isOwn = run.name.startsWith(ownName) && /^(-\d+)?$/.test(run.name.slice(ownName.length));
  // Of one path, and yet other inputs: each has files of its own.
  if (run.inputPath === '-') return run.name === ownName ? null : run.name;
  return isOwn ? null : run.name;
}

function ownNameOf(inputPath: string, simulated: boolean): string {
  const stem =
    inputPath === '-'
      ? 'stdin'
      : basename(folderOfTextFiles(inputPath) ?? inputPath)
          .replace(/\.gz$/, '')
          .replace(/\.[^.]+$/, '');
  return `${stem === '' ? 'run' : stem}${simulated ? '-simulated' : ''}`;
}

/** A name for a new run that is not taken yet: `reviews`, `reviews-2`, … */
export async function chooseRunName(store: Store, inputPath: string, simulated: boolean): Promise<string> {
  const base = ownNameOf(inputPath, simulated);
  const taken = new Set((await store.listRuns()).map((run) => run.name));
  if (!taken.has(base)) return base;
  for (let number = 2; ; number += 1) {
    if (!taken.has(`${base}-${number}`)) return `${base}-${number}`;
  }
}

/**
 * The run that a command's `[run]` names, or by default the newest unfinished one, or else the newest.
 * @throws LlmBatchError RUN_UNKNOWN (exit 2) naming the runs there are
 */
export async function findRun(store: Store, name: string | undefined): Promise<RunRecord> {
  const runs = await store.listRuns();
  const [newest] = runs;
  if (newest === undefined) {
    throw usageError('RUN_UNKNOWN', 'The store holds no run yet.', 'start one: llm-batch run input.jsonl');
  }
  if (name !== undefined) {
    const named = runs.find((run) => run.name === name);
    if (named !== undefined) return named;
    const known = runs.slice(0, 10).map((run) => run.name);
    throw usageError('RUN_UNKNOWN', `There is no run '${name}'.`, `runs in this store: ${known.join(', ')}`);
  }
  return runs.find((run) => run.status === 'open' || run.status === 'importing') ?? newest;
}

/**
 * The run that `run <input>` goes on with, and its name or that of a new one.
 * @throws LlmBatchError (exit 2) as `findRunForInput`, RUN_CANCELLED
 */
export async function runForInput(
  store: Store,
  wanted: Parameters<typeof findRunForInput>[1],
): Promise<{ readonly existing: RunRecord | null; readonly name: string }> {
  const existing = await findRunForInput(store, wanted);
  const freeName = (): Promise<string> => chooseRunName(store, wanted.inputPath, wanted.simulated);
  if (existing?.status === 'cancelled') throw cancelledForGood(existing, await freeName());
  return { existing, name: existing?.name ?? wanted.name ?? (await freeName()) };
}

/** As `findRun`, of those that can be sent on. @throws LlmBatchError (exit 2) RUN_CANCELLED, RUN_IMPORTING */
export async function findRunToResume(store: Store, name: string | undefined): Promise<RunRecord> {
  const run = await findRunAlive(store, name);
  if (run.status !== 'importing') return run;
  throw usageError(
    'RUN_IMPORTING',
    `The import of run '${run.name}' was cut off, so its documents are not all here.`,
    { input: run.inputPath },
  );
}

/** As `findRun`, of those that are not cancelled. @throws LlmBatchError (exit 2) RUN_CANCELLED */
export async function findRunAlive(store: Store, name: string | undefined): Promise<RunRecord> {
  const run = await findRun(store, name);
  if (run.status === 'cancelled') throw cancelledForGood(run, null);
  return run;
}

/** @param freeName that a run of its input in its place could have */
function cancelledForGood({ name }: RunRecord, freeName: string | null): LlmBatchError {
  return usageError('RUN_CANCELLED', `Run '${name}' was cancelled for good.`, { run: name, freeName });
}
