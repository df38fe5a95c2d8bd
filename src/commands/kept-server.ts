/** `run` again without a server keeps the one that its run was begun with, as `resume` does. */
import type { CommandContext } from '../app/context.js';
import { withStore } from '../app/open-store.js';
import type { ResolvedSettings } from '../config/load.js';
import type { Settings } from '../config/settings.js';
import { EXIT_CODES, LlmBatchError } from '../core/errors.js';
import type { RunRecord } from '../core/run.js';
import { findRunForInput } from '../runs/find-run.js';
import { type RunSettings, settingsOfRun } from '../runs/run-settings.js';
import type { Store } from '../store/store.js';
import { connectionWithGivenFlags } from './asked-settings.js';
import { trustStoredRun } from './stored-reach.js';

/**
 * @param wanted what the run is found by
 * @param isSure `--trust-store` was given: nobody is asked
 * @returns what is asked for now, with the server and the keys of the run that it goes on with where none are named
 * @throws LlmBatchError as `findRunForInput` and `trustStoredRun`
 */
export async function keepServer(
  context: CommandContext,
  resolved: ResolvedSettings,
  asked: RunSettings,
  wanted: Omit<Parameters<typeof findRunForInput>[1], 'simulated'>,
  isSure: boolean,
): Promise<RunSettings> {
  const { settings, lanes } = resolved;
  if (settings.baseUrl !== null || lanes !== null || asked.simulator !== null) return asked;
  const stored = await withRunOf(context, settings, { ...wanted, simulated: false }, async (run) =>
    settingsOfRun(run),
  );
  if (stored === null) return asked;
  const kept = { ...asked, connection: connectionWithGivenFlags(stored.connection, resolved) };
  await trustStoredRun(context, kept, resolved, isSure);
  return kept;
}

/** Looks at the run that `run` would go on with; null where there is none, or where only `run` can tell which it is. */
export async function withRunOf<Value>(
  context: CommandContext,
  settings: Settings,
  wanted: Parameters<typeof findRunForInput>[1],
  look: (run: RunRecord, store: Store) => Promise<Value>,
): Promise<Value | null> {
  // What standard input holds decides which run it is of, and that is not read yet, or gone.
  if (wanted.inputPath === '-' && wanted.name === null) return null;
  try {
    return await withStore(context, settings, 'read', async (store) => {
      const run = await findRunForInput(store, wanted);
      return run === null || run.status === 'cancelled' ? null : look(run, store);
    });
  } catch (error) {
    // No store yet, or one that only a writer may open: nothing that could be told here.
    if (error instanceof LlmBatchError && error.exitCode === EXIT_CODES.store) return null;
    throw error;
  }
}
