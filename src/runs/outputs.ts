/**
 * Whose are the files a run is about to write? A run may replace what it wrote itself, and a rehearsal's files
 * belong to whoever comes next; everything else needs the user's word. Looked at before the first call, so that no
 * run ends with answers and no place to put them; a file that turns up in between is not overwritten either.
 */
import { type ErrorFacts, EXIT_CODES, type ExitCode, LlmBatchError } from '../core/errors.js';
import type { RunRecord, WrittenFile } from '../core/run.js';
import { fileAt, isUnchanged } from '../results/atomic-file.js';
import type { OutputPaths } from '../results/output-paths.js';
import { checkRunFiles } from '../results/run-files.js';
import type { Store } from '../store/store.js';

/** @throws LlmBatchError (exit 2, since no call was made) when the run's files could not be written at its end */
export async function checkOutputs(
  store: Store,
  run: RunRecord | null,
  {
    inputPath,
    ...claim
  }: { readonly paths: OutputPaths; readonly inputPath: string; readonly force: boolean },
): Promise<void> {
  const ownFiles = await filesOf(store, run);
  try {
    await checkRunFiles({ ...claim, ownFiles }, inputPath);
  } catch (error) {
    throw beforeTheFirstCall(error);
  }
}

/** What a run may replace, as it was written: its own files, and those of rehearsals. */
export async function filesOf(store: Store, run: RunRecord | null): Promise<readonly WrittenFile[]> {
  const runs = await store.listRuns();
  return runs
    .filter((other) => other.id === run?.id || other.simulated)
    .flatMap((other) => other.writtenFiles);
}

/** Notes a file as the run's own as it is now. The one that it is about to replace is kept: a crash may come between. */
export async function noteWrittenFile(store: Store, runId: number, file: WrittenFile): Promise<void> {
  const run = (await store.listRuns()).find((other) => other.id === runId);
  if (run === undefined) return;
  const replaced = await fileAt(file.path).catch(() => null);
  const kept: WrittenFile[] = [];
  for (const written of run.writtenFiles) {
    if (written.path !== file.path || (await isUnchanged(written, replaced))) kept.push(written);
  }
  await store.updateRun(runId, { writtenFiles: [...kept, file] });
}

/** Where a file cannot be written at the end, the answers are safe in the store; here there are none yet. */
function beforeTheFirstCall(error: unknown): unknown {
  if (!(error instanceof LlmBatchError)) return error;
  if (error.code !== 'OUTPUT_PATH' && error.code !== 'OUTPUT_WRITE') return error;
  return retold(error, EXIT_CODES.usage, { callsMade: false });
}

function retold(cause: LlmBatchError, exitCode: ExitCode, more: ErrorFacts): LlmBatchError {
  const { message, code, facts } = cause;
  return new LlmBatchError(message, { code, exitCode, facts: { ...facts, ...more }, cause });
}

/** Marks the files as this run's, before the first of them is written. */
export function claimOutputs(store: Store, run: RunRecord, paths: OutputPaths): Promise<void> {
  return claimFiles(
    store,
    run,
    [paths.results, paths.errors].filter((path) => path !== null),
  );
}

/** Marks files as this run's, and as no other's. @param claimed absolute paths */
export async function claimFiles(store: Store, run: RunRecord, claimed: readonly string[]): Promise<void> {
  for (const other of await store.listRuns()) {
    const kept = other.outputPaths.filter((path) => !claimed.includes(path));
    if (other.id !== run.id && kept.length < other.outputPaths.length) {
      await store.updateRun(other.id, { outputPaths: kept });
    }
  }
  await store.updateRun(run.id, { outputPaths: [...new Set([...run.outputPaths, ...claimed])] });
}

/**
 * What is told where the files cannot be written after all. For a file that turned up while the run was going on, what
 * was claimed is given back, so that a later `resume` does not take that file for one of its own.
 * @param run as it was before `claimOutputs`
 * @returns the error to be thrown; never one of exit 2, which says that no call was made
 */
export async function afterTheCalls(store: Store, run: RunRecord, error: unknown): Promise<unknown> {
  if (!(error instanceof LlmBatchError) || error.exitCode !== EXIT_CODES.usage) return error;
  const isTaken = error.code === 'OUTPUT_EXISTS';
  if (isTaken) await store.updateRun(run.id, { outputPaths: run.outputPaths });
  return retold(error, EXIT_CODES.store, { callsMade: true, run: run.name });
}
