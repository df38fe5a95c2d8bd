/**
 * Whose are the files a run is about to write? A run may replace what it wrote itself, and a rehearsal's files
 * belong to whoever comes next; everything else needs `--force`. Looked at before the first call, so that no
 * run ends with answers and no place to put them; a file that turns up in between is not overwritten either.
 */
import type { OutputPaths } from '../results/output-paths.js';
import { checkRunFiles } from '../results/run-files.js';
import type { RunRecord, Store } from '../store/store.js';

export interface OutputClaim {
  readonly paths: OutputPaths;
  readonly inputPath: string;
  readonly force: boolean;
}

/**
 * @returns the paths that may be replaced at the end
 * @throws LlmBatchError (exit 2) when the run's files could not be written at its end
 */
export async function checkOutputs(
  store: Store,
  run: RunRecord | null,
  claim: OutputClaim,
): Promise<readonly string[]> {
  const rehearsals = (await store.listRuns()).filter((other) => other.simulated);
  const ownedPaths = [...(run?.outputPaths ?? []), ...rehearsals.flatMap((other) => other.outputPaths)];
  await checkRunFiles({ paths: claim.paths, ownedPaths, force: claim.force }, claim.inputPath);
  return ownedPaths;
}

/** Marks the files as this run's, before the first of them is written. */
export async function claimOutputs(store: Store, run: RunRecord, paths: OutputPaths): Promise<void> {
  const claimed = [paths.results, paths.errors].filter((path) => path !== null);
  for (const other of await store.listRuns()) {
    const kept = other.outputPaths.filter((path) => !claimed.includes(path));
    if (other.id !== run.id && kept.length < other.outputPaths.length) {
      await store.updateRun(other.id, { outputPaths: kept });
    }
  }
  await store.updateRun(run.id, { outputPaths: [...new Set([...run.outputPaths, ...claimed])] });
}
