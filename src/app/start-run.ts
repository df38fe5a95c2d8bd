/** `run` from its store on: the run of the input is found or made, its documents are brought in, and it is sent. */
import type { RunRecord } from '../core/run.js';
import type { OutputPaths } from '../results/output-paths.js';
import type { SentRun } from '../runs/execute-run.js';
import { givenName, runForInput } from '../runs/find-run.js';
import { type ImportRules, importDocuments } from '../runs/import-documents.js';
import { ImportInterrupted } from '../runs/import-input.js';
import { checkOutputs } from '../runs/outputs.js';
import { untilStopped } from '../runs/read-documents.js';
import type { RunSettings } from '../runs/run-settings.js';
import { type SpooledInput, spoolStandardInput } from '../runs/standard-input.js';
import type { CommandContext } from './context.js';
import { type HomeFolders, homeFolders, ownStore, withStore } from './open-store.js';
import { type SendRunOptions, sendRun } from './send-run.js';
import { wantedInput } from './wanted-input.js';

export interface StartOptions extends Pick<SendRunOptions, 'settings' | 'choice' | 'waits' | 'tell'> {
  /** Of the run, as the user asks now. */
  readonly runSettings: RunSettings;
  /** Paths, a pattern or `-`, as the user gave them. */
  readonly inputs: readonly string[];
  /** What the run is found by. */
  readonly inputPath: string;
  /** The name that the user gave the run; null: none. */
  readonly name: string | null;
  readonly rules: Omit<ImportRules, 'rejectsPath'>;
  /** Standard output gets the answers that this drain brings, and none that are there already. */
  readonly onlyNew: boolean;
  /** The documents are brought in, and sent by workers. */
  readonly detached: boolean;
  readonly pathsOf: (runName: string | null) => OutputPaths;
  /** Told where the run will write, before it is there to be resumed. */
  readonly onPlaces: (paths: OutputPaths, homes: HomeFolders) => void;
}

/** @throws LlmBatchError as `runForInput`, `checkOutputs`, `importDocuments` and `sendRun` do */
export async function startRun(
  context: CommandContext,
  options: StartOptions,
): Promise<SentRun | 'interrupted' | { readonly detached: RunRecord }> {
  const { inputPath } = options;
  const spool = inputPath === '-' ? await spoolInput(context, options) : null;
  if (spool === 'interrupted') return spool;
  try {
    return await startSpooled(context, options, spool);
  } finally {
    await spool?.remove();
  }
}

/** What standard input holds; it decides which run it is of. */
async function spoolInput(
  context: CommandContext,
  { settings, inputs, inputPath, tell }: StartOptions,
): Promise<SpooledInput | 'interrupted'> {
  const input = wantedInput(context, settings, inputs);
  tell({ type: 'import_started' });
  try {
    return await untilStopped(input, context.interrupts, (signal) => spoolStandardInput(input.stdin, signal));
  } catch (error) {
    if (!(error instanceof ImportInterrupted)) throw error;
    tell({ type: 'import_interrupted', input: inputPath });
    return 'interrupted';
  } finally {
    tell({ type: 'import_ended' });
  }
}

function startSpooled(
  context: CommandContext,
  options: StartOptions,
  spool: SpooledInput | null,
): Promise<SentRun | 'interrupted' | { readonly detached: RunRecord }> {
  const { settings, runSettings, inputPath, rules, tell } = options;
  return withStore(context, settings, 'write', async (store) => {
    const simulated = runSettings.simulator !== null;
    const { query } = settings;
    const { existing, name } = await runForInput(store, {
      name: options.name,
      inputPath,
      query,
      simulated,
      inputSha256: spool?.sha256,
    });
    await ownStore(context, store, name);
    const paths = options.pathsOf(givenName({ name, inputPath, simulated }));
    // Workers write no files.
    if (!options.detached) await checkOutputs(store, existing, { paths, inputPath, force: rules.force });
    options.onPlaces(paths, await homeFolders(context, settings));
    const run = await importDocuments({
      store,
      run: existing ?? { name, inputPath, simulated, createdAtMs: context.clock.now() },
      settings: spool === null ? runSettings : { ...runSettings, inputSha256: spool.sha256 },
      input: wantedInput(context, settings, options.inputs, spool?.path ?? null),
      rules: { ...rules, rejectsPath: paths.rejects },
      stop: context.interrupts,
      tell,
    });
    await spool?.remove();
    if (run === 'interrupted') return run;
    if (options.detached) return { detached: run };
    const outputs = { paths, force: rules.force, onlyNew: options.onlyNew };
    const { choice, waits } = options;
    return sendRun(context, { settings, store, run, outputs, choice, waits, tell });
  });
}
