/** Which run a user means. */
import { basename } from 'node:path';
import { usageError } from '../core/errors.js';
import { folderOfTextFiles } from '../documents/input-files.js';
import type { RunRecord, Store } from '../store/store.js';

/**
 * The run that `run <input>` goes on with: the one of that name, else the one of that input. Of several, the one that
 * was not named by the user goes first: a `--name` of its own is asked for again by that name. A cancelled run is
 * found only where there is no other: to start a new one in its place would pay for its answers again.
 */
export async function findRunForInput(
  store: Store,
  wanted: { readonly name: string | null; readonly inputPath: string; readonly simulated: boolean },
): Promise<RunRecord | null> {
  const runs = await store.listRuns();
  if (wanted.name !== null) {
    const named = runs.find((run) => run.name === wanted.name) ?? null;
    if (named !== null && named.simulated !== wanted.simulated) {
      throw usageError(
        'RUN_SIMULATED_MIX',
        `Run '${named.name}' is ${named.simulated ? 'simulated' : 'real'}; simulated and real answers are never mixed.`,
        'choose another --name',
      );
    }
    return named;
  }
  const ofInput = runs.filter(
    (run) => run.inputPath === wanted.inputPath && run.simulated === wanted.simulated,
  );
  const ownName = ownNameOf(wanted.inputPath, wanted.simulated);
  const isUnnamed = (run: RunRecord): boolean =>
    run.name.startsWith(ownName) && /^(-\d+)?$/.test(run.name.slice(ownName.length));
  const alive = ofInput.filter((run) => run.status !== 'cancelled');
  return alive.find(isUnnamed) ?? alive[0] ?? ofInput[0] ?? null;
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
  if (runs.length === 0) {
    throw usageError('RUN_UNKNOWN', 'The store holds no run yet.', 'start one: llm-batch run input.jsonl');
  }
  if (name !== undefined) {
    const named = runs.find((run) => run.name === name);
    if (named !== undefined) return named;
    const known = runs.slice(0, 10).map((run) => run.name);
    throw usageError('RUN_UNKNOWN', `There is no run '${name}'.`, `runs in this store: ${known.join(', ')}`);
  }
  const chosen = runs.find((run) => run.status === 'open' || run.status === 'importing') ?? runs[0];
  if (chosen === undefined) throw usageError('RUN_UNKNOWN', 'The store holds no run yet.');
  return chosen;
}
