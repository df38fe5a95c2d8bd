/** `run <input>`: imports the documents as tasks, drains them, writes the results; run again, it goes on. */
import type { Command } from 'commander';
import { checkConnection, checkPrices, checkStoredConnection } from '../app/composition.js';
import type { CommandContext } from '../app/context.js';
import { startRun } from '../app/start-run.js';
import { watchRun } from '../app/watch-run.js';
import { parseCount } from '../config/values.js';
import { EXIT_CODES, type ExitCode, type LlmBatchError, usageError } from '../core/errors.js';
import type { Choice } from '../core/event.js';
import { createRequestBuilder } from '../documents/request.js';
import { locateInput } from '../input/input-files.js';
import { type OutputPaths, outputPathsFor } from '../results/output-paths.js';
import { checkTokenLimit } from '../runs/token-limit.js';
import { shellWord } from '../ui/next-command.js';
import { writeNotice } from '../ui/notice.js';
import type { Action, Verb } from './action.js';
import { runSettingsFrom, unusedLanesNotice } from './asked-settings.js';
import { choose } from './confirm.js';
import { dryRun } from './dry-run.js';
import { exitCodeOf } from './exit-code.js';
import { addInputArgument } from './input-argument.js';
import { keepServer } from './kept-server.js';
import {
  NO_WAIT_FLAG,
  ONLY_NEW_FLAG,
  OUTPUT_FLAG,
  refuseNoWaitAlone,
  refuseOnlyNewAlone,
} from './output-flags.js';
import { addSettingFlags, collect, OTHER_RUN_GROUPS, readSettings } from './setting-flags.js';
import { refuseOddPlace, rememberReach, TRUST_STORE_FLAG } from './stored-reach.js';

const EXAMPLES = `
Examples:
  llm-batch run reviews.jsonl --prompt 'Classify the sentiment: {{text}}' --model gpt-4o-mini
  llm-batch run reviews.jsonl --prompt 'Classify the sentiment: {{text}}' --limit 20      try it first
  llm-batch run reviews.csv --prompt 'Classify the sentiment: {{text}}' --rpm 500 --tpm 200k --concurrency 32
  llm-batch run reviews.jsonl --prompt '{{text}}' --remote --no-wait      half the price; resume fetches the answers
  llm-batch run photos.jsonl --prompt 'What is on this picture? {{image photo}}'
  llm-batch run 'notes/*.md' --prompt 'Summarise: {{text}}'      each file is a document
  llm-batch run reviews.jsonl --base-url http://localhost:11434/v1 --model llama3.2 --prompt '{{text}}'
  llm-batch run shop.db --query 'SELECT id, text FROM reviews WHERE stars < 3' --prompt '{{text}}'
  zcat docs.jsonl.gz | llm-batch run - --prompt-file prompt.txt -o - > answers.jsonl
  llm-batch run reviews.jsonl --prompt '{{text}}' --detach      workers send it: llm-batch worker --run reviews
  llm-batch run reviews.jsonl --prompt '{{text}}' --simulate      rehearse: nobody is called`;

export function registerRun(program: Command, action: Action): void {
  const command = addInputArgument(program.command('run'))
    .description('import the documents, send them, write the results; run again, it goes on where it was')
    .addHelpText('after', EXAMPLES);
  addSettingFlags(command, ['request']);
  command
    .option('--param <name=value>', 'request parameter, e.g. temperature=0; may be repeated', collect)
    .option(
      '--limit <n>',
      'send only the first n documents, and show their answers; the same without it goes on',
    )
    .option('--sample <n>', 'the same with n documents from all over the input')
    .option('--name <name>', "name of the run (default: the input's name)")
    .option('--rerun-changed', 'documents that changed since they were answered are sent and paid for again')
    .option('--keep', 'documents that changed since they were answered keep the answer they have')
    .option('--skip-bad-lines', 'set bad lines aside in a rejects file and go on')
    .option(...OUTPUT_FLAG)
    .option(...ONLY_NEW_FLAG)
    .option(...NO_WAIT_FLAG)
    .option('--detach', 'bring the documents in and leave it to workers to send them')
    .option('--force', 'overwrite a results file of another run')
    .option(...TRUST_STORE_FLAG)
    .option('--dry-run', 'print tokens, cost and time and the first request; send and store nothing')
    .option('--simulate', 'rehearse against a simulated server on this machine: free, nobody is called');
  addSettingFlags(command, OTHER_RUN_GROUPS).action(action(run));
}

interface RunOptions {
  readonly param?: readonly string[];
  readonly limit?: string;
  readonly sample?: string;
  readonly name?: string;
  readonly rerunChanged?: boolean;
  readonly keep?: boolean;
  readonly skipBadLines?: boolean;
  readonly output?: string;
  readonly onlyNew?: boolean;
  readonly force?: boolean;
  readonly trustStore?: boolean;
  readonly wait?: boolean;
  readonly detach?: boolean;
  readonly dryRun?: boolean;
  readonly simulate?: boolean;
}

async function run(verb: Verb, inputs: readonly string[], options: RunOptions): Promise<ExitCode> {
  const { context } = verb;
  const resolved = await readSettings(verb);
  const { settings } = resolved;
  if (options.rerunChanged && options.keep) {
    throw usageError(
      'CHANGED_TWICE',
      '--rerun-changed and --keep contradict each other.',
      'keep one of them',
    );
  }
  const choice = choiceOf(options);
  const detached = options.detach ?? false;
  if (detached) refuseSendingFlags(options);
  refuseOnlyNewAlone(options);
  refuseNoWaitAlone(options.wait ?? true, settings.remote);
  const asked = await runSettingsFrom(resolved, { inputs, ...options }, context.workingFolder);
  // A template that cannot be compiled and a missing key are told before a million lines are read.
  createRequestBuilder(asked.request);
  checkTokenLimit(asked);
  const { identity: inputPath } = await locateInput(inputs, {
    cwd: context.workingFolder,
    format: settings.inputFormat,
  });
  const name = options.name ?? null;
  const skipBadLines = options.skipBadLines ?? false;
  const wanted = { name, inputPath, query: settings.query };
  if (options.dryRun) {
    return dryRun({ context, resolved, runSettings: asked, inputs, wanted, skipBadLines, choice });
  }
  const runSettings = await keepServer(context, resolved, asked, wanted, options.trustStore ?? false);
  if (detached) checkStoredConnection(runSettings, context);
  else checkConnection(runSettings, context);
  await checkPrices(runSettings, context);
  const pathsOf = (runName: string | null): OutputPaths => {
    const paths = outputPathsFor(inputPath, {
      workingDirectory: context.workingFolder,
      runName,
      ...(options.output === undefined ? {} : { output: options.output }),
    });
    const derived = [...(options.output === undefined ? [paths.results] : []), paths.errors, paths.rejects];
    for (const path of derived) if (path !== null) refuseOddPlace(path);
    return paths;
  };
  // A path that can be no output is told before there is a store.
  pathsOf(null);
  const tell = watchRun(context, settings);
  const unusedLanes = unusedLanesNotice(resolved, null);
  if (unusedLanes !== null) tell({ type: 'warning', message: unusedLanes });

  const sent = await startRun(context, {
    ...{ settings, runSettings, inputs, inputPath, name, choice, detached, pathsOf, tell },
    rules: {
      onChanged: (refusal) => changedRule(context, options, refusal),
      skipBadLines,
      force: options.force ?? false,
    },
    onlyNew: options.onlyNew ?? false,
    waits: options.wait ?? true,
    onPlaces: (paths, homes) => rememberReach(context, tell, runSettings, paths, homes),
  });
  if (sent === 'interrupted') return EXIT_CODES.interrupted;
  if (!('detached' in sent)) return exitCodeOf([sent], sent.end.reason === 'stopped');
  if (!settings.quiet && !settings.logJson) {
    const name = shellWord(sent.detached.name);
    writeNotice(
      context.stderr,
      context.command(
        `Nothing is sent yet: workers do that, \`llm-batch worker --run ${name}\` here or anywhere with this store.\n` +
          `Next: llm-batch status ${name}`,
      ),
    );
  }
  return EXIT_CODES.completed;
}

/** @throws LlmBatchError DETACHED_TWICE (exit 2) for what only a process that sends can do */
function refuseSendingFlags(options: RunOptions): void {
  const { limit, sample, output, onlyNew, wait } = options;
  const odd = [
    ['--limit', limit !== undefined],
    ['--sample', sample !== undefined],
    ['-o', output !== undefined],
    ['--only-new', onlyNew === true],
    ['--no-wait', wait === false],
  ].find(([, isGiven]) => isGiven);
  if (odd === undefined) return;
  throw usageError(
    'DETACHED_TWICE',
    `--detach only brings documents in, so ${odd[0]} has nothing to do here.`,
    'leave it out; `llm-batch results` writes the answers when they are there',
  );
}

/** @throws refusal where the user has not said what is to become of changed documents, and does not say it now */
async function changedRule(
  context: CommandContext,
  { rerunChanged, keep }: RunOptions,
  refusal: LlmBatchError,
): Promise<'rerun' | 'keep'> {
  if (rerunChanged) return 'rerun';
  if (keep) return 'keep';
  const again = refusal.facts['simulated'] === true ? 'send them again' : 'pay for them again';
  const question = `${refusal.message} What now: ${again} (a), keep the answers they have (k), or stop here (s)?`;
  const answer = await choose(context, question, ['a', 'k', 's']);
  if (answer === 'a') return 'rerun';
  if (answer === 'k') return 'keep';
  throw refusal;
}

/** @throws LlmBatchError (exit 2) CHOICE_INVALID, CHOSEN_TWICE */
function choiceOf({ limit, sample }: RunOptions): Choice | null {
  if (limit !== undefined && sample !== undefined) {
    throw usageError('CHOSEN_TWICE', '--limit and --sample contradict each other.', 'keep one of them');
  }
  const by = limit === undefined ? 'sample' : 'limit';
  const said = limit ?? sample;
  if (said === undefined) return null;
  try {
    return { by, count: parseCount(said) };
  } catch {
    throw usageError(
      'CHOICE_INVALID',
      `Expected --${by} to be a whole number above 0, got ${JSON.stringify(said)}.`,
      `for example --${by} 20`,
    );
  }
}
