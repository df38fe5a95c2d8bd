/** `run` again without a server keeps the one that its run was begun with, as `resume` does. */
import type { CommandContext } from '../app/context.js';
import { homeFolders, withStore } from '../app/open-store.js';
import type { ResolvedSettings } from '../config/load.js';
import { EXIT_CODES, LlmBatchError } from '../core/errors.js';
import { findRunForInput } from '../runs/find-run.js';
import { type RunSettings, settingsOfRun } from '../runs/run-settings.js';
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
  // Which run it is, what it holds decides, and that is not read yet.
  if (wanted.inputPath === '-' && wanted.name === null) return asked;
  const stored = await storedSettings(context, resolved, wanted);
  if (stored === null) return asked;
  const kept = { ...asked, connection: connectionWithGivenFlags(stored.connection, resolved) };
  await trustStoredRun(context, kept, resolved, await homeFolders(context, settings), isSure);
  return kept;
}

async function storedSettings(
  context: CommandContext,
  { settings }: ResolvedSettings,
  wanted: Omit<Parameters<typeof findRunForInput>[1], 'simulated'>,
): Promise<RunSettings | null> {
  try {
    return await withStore(context, settings, 'read', async (store) => {
      const run = await findRunForInput(store, { ...wanted, simulated: false });
      return run === null || run.status === 'cancelled' ? null : settingsOfRun(run);
    });
  } catch (error) {
    // No store yet; one that only a writer may open says so when the run opens it.
    if (error instanceof LlmBatchError && error.exitCode === EXIT_CODES.store) return null;
    throw error;
  }
}
