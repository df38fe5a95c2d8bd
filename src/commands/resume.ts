/** `resume [run]`: goes on from the store alone; the input file is not needed. */
import type { Command } from 'commander';
import { checkRun } from '../app/composition.js';
import { homeFolders, ownStore, withStore } from '../app/open-store.js';
import { sendRun } from '../app/send-run.js';
import { watchRun } from '../app/watch-run.js';
import type { ExitCode } from '../core/errors.js';
import { outputPathsFor } from '../results/output-paths.js';
import { findRunToResume, givenName } from '../runs/find-run.js';
import { checkOutputs } from '../runs/outputs.js';
import { settingsOfRun, settingsToJson } from '../runs/run-settings.js';
import type { Action, Verb } from './action.js';
import { outputFile, unusedLanesNotice, withGivenFlags } from './asked-settings.js';
import { exitCodeOf } from './exit-code.js';
import {
  NO_WAIT_FLAG,
  ONLY_NEW_FLAG,
  OUTPUT_FLAG,
  refuseNoWaitAlone,
  refuseOnlyNewAlone,
} from './output-flags.js';
import { addSettingFlags, readSettings, SENDING_GROUPS } from './setting-flags.js';
import { refuseForeignPlace, rememberReach, TRUST_STORE_FLAG, trustStoredRun } from './stored-reach.js';

const EXAMPLES = `
Examples:
  llm-batch resume
  llm-batch resume reviews --rpm 200 --concurrency 8
  llm-batch resume reviews --max-cost 20`;

export function registerResume(program: Command, action: Action): void {
  const command = program
    .command('resume')
    .argument('[run]', 'name of the run; default: the newest unfinished one')
    .description('go on after a crash, a reboot, a Ctrl-C or an empty account; needs the store only')
    .addHelpText('after', EXAMPLES)
    .option(...OUTPUT_FLAG)
    .option(...ONLY_NEW_FLAG)
    .option(...NO_WAIT_FLAG)
    .option('--force', 'overwrite a results file of another run')
    .option(...TRUST_STORE_FLAG);
  addSettingFlags(command, SENDING_GROUPS).action(action(resume));
}

interface ResumeOptions {
  readonly output?: string;
  readonly onlyNew?: boolean;
  readonly wait?: boolean;
  readonly force?: boolean;
  readonly trustStore?: boolean;
}

async function resume(verb: Verb, runName: string | undefined, options: ResumeOptions): Promise<ExitCode> {
  const { context } = verb;
  const resolved = await readSettings(verb);
  const { settings } = resolved;
  const force = options.force ?? false;
  refuseOnlyNewAlone(options);
  return withStore(context, settings, 'send', async (store) => {
    const found = await findRunToResume(store, runName);
    const stored = withGivenFlags(settingsOfRun(found), resolved, context.workingFolder);
    const runSettings =
      options.output === undefined
        ? stored
        : { ...stored, output: outputFile(options.output, context.workingFolder) };
    refuseNoWaitAlone(options.wait ?? true, runSettings.remote.remote);
    await trustStoredRun(context, runSettings, resolved, options.trustStore);
    await checkRun(runSettings, context);
    await ownStore(context, store, found.name);
    const output = options.output ?? runSettings.output ?? undefined;
    const outputPaths = outputPathsFor(found.inputPath, {
      workingDirectory: context.workingFolder,
      runName: givenName(found),
      ...(output === undefined ? {} : { output }),
    });
    const homes = await homeFolders(context, settings);
    if (options.output === undefined) {
      refuseForeignPlace(context, outputPaths.results, output === undefined, homes);
      refuseForeignPlace(context, outputPaths.errors, true, homes);
    }
    await checkOutputs(store, found, { paths: outputPaths, inputPath: found.inputPath, force });
    const tell = watchRun(context, settings);
    const unusedLanes = unusedLanesNotice(resolved, settingsOfRun(found).connection.lanes);
    if (unusedLanes !== null) tell({ type: 'warning', message: unusedLanes });
    rememberReach(context, tell, runSettings, outputPaths, homes);
    const run = await store.updateRun(found.id, { settings: settingsToJson(runSettings, store) });
    const outputs = { paths: outputPaths, force, onlyNew: options.onlyNew ?? false };
    const waits = options.wait ?? true;
    const sent = await sendRun(context, { settings, store, run, outputs, choice: null, waits, tell });
    return exitCodeOf([sent], sent.end.reason === 'stopped');
  });
}
