/** The program: every verb with its flags. Actions import what they need, so that `--help` stays fast. */
import { createRequire } from 'node:module';
import { Command } from 'commander';
import type { CommandContext } from '../app/context.js';
import { EXIT_CODES, type ExitCode, usageError } from '../core/errors.js';
import { columnsOf } from '../ui/colours.js';
import { shellWord } from '../ui/next-command.js';
import type { Action } from './action.js';
import { registerCancel } from './cancel.js';
import { registerCheck } from './check.js';
import { registerCompare } from './compare.js';
import { registerCompletion } from './completion.js';
import { registerCopy } from './copy.js';
import { registerDoctor } from './doctor.js';
import { registerEstimate } from './estimate.js';
import { registerFailures } from './failures.js';
import { refuseFamiliarFlags } from './familiar-flags.js';
import { registerList } from './list.js';
import { registerPrune } from './prune.js';
import { registerReport } from './report.js';
import { registerResults } from './results.js';
import { registerResume } from './resume.js';
import { registerRetry } from './retry.js';
import { registerRun } from './run.js';
import { registerServe } from './serve.js';
import { registerSimulate } from './simulate.js';
import { registerStatus } from './status.js';
import { registerSubmit } from './submit.js';
import { registerTrust } from './trust.js';
import { registerWebhooks } from './webhooks.js';
import { registerWorker } from './worker.js';

export interface Program {
  readonly command: Command;
  /** @throws CommanderError for wrong usage, LlmBatchError for what a command refuses */
  run(argv: readonly string[]): Promise<ExitCode>;
}

const GROUPS = [
  ['Send documents:', [registerRun, registerResume, registerWorker, registerRetry, registerCancel]],
  [
    'See what came of it:',
    [registerList, registerStatus, registerResults, registerFailures, registerReport, registerCompare],
  ],
  ['Look before you spend:', [registerCheck, registerEstimate, registerDoctor, registerSimulate]],
  ['Take work from other programs:', [registerServe, registerSubmit, registerWebhooks]],
  ['Keep house:', [registerPrune, registerCopy, registerTrust, registerCompletion]],
] as const;

const EXIT_CODE_HELP = `
Exit codes: 0 all completed · 1 unexpected error · 2 usage or input error, no call was made · 3 finished, some failed ·
  4 stopped: key, quota, budget or endpoint · 5 store problem · 130 interrupted. \`llm-batch resume\` goes on after 4, 5 and 130.`;

export function buildProgram(context: CommandContext): Program {
  let exitCode: ExitCode = EXIT_CODES.completed;
  const action: Action = (perform) =>
    async function (...args) {
      exitCode = await perform({ command: this, context }, ...args);
    };

  const command = new Command('llm-batch')
    .description('Run a file of documents through an LLM API: durable, within its limits, resumable.')
    .version(packageVersion(), '-v, --version')
    .helpCommand(false)
    .showSuggestionAfterError()
    .showHelpAfterError('  try: llm-batch --help')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.stdout.write(context.command(text)),
      writeErr: (text) => context.stderr.write(context.command(text)),
    })
    .configureHelp({ helpWidth: Math.min(columnsOf(context.stdout), 120) })
    .addHelpText('after', EXIT_CODE_HELP);

  for (const [heading, registrations] of GROUPS) {
    command.commandsGroup(heading);
    for (const register of registrations) register(command, action);
  }
  for (const verb of command.commands) verb.showHelpAfterError(`  try: llm-batch ${verb.name()} --help`);
  return {
    command,
    async run(argv) {
      if (asksForJsonLog(argv)) for (const each of [command, ...command.commands]) silenceErrors(each);
      refuseInputAlone(command, argv[2]);
      const verb = command.commands.find((each) => each.name() === argv[2]);
      if (verb !== undefined) refuseFamiliarFlags(verb, argv.slice(3));
      const [node = '', script = '', word, ...rest] = argv;
      // As other programs are asked; a command of its own would stand in every list of commands.
      await command.parseAsync(word === 'help' ? [node, script, ...rest, '--help'] : [...argv]);
      return exitCode;
    },
  };
}

/** Asked before the flags are parsed, for what goes wrong there. */
export function asksForJsonLog(argv: readonly string[]): boolean {
  return argv.includes('--log-json');
}

/** What commander says of wrong usage is told as JSON by whoever reports errors. */
function silenceErrors(command: Command): void {
  command.showHelpAfterError(false).configureOutput({ outputError: () => undefined });
}

/** `llm-batch docs.jsonl`: commander would look for a command of a like name. @throws LlmBatchError (exit 2) COMMAND_MISSING */
function refuseInputAlone(program: Command, word: string | undefined): void {
  if (word === undefined || !/^[^-].*[./*]/.test(word)) return;
  if (program.commands.some((verb) => verb.name() === word)) return;
  throw usageError(
    'COMMAND_MISSING',
    `${shellWord(word)} is no command.`,
    `to send the documents of a file: llm-batch run ${shellWord(word)}`,
  );
}

function packageVersion(): string {
  return (createRequire(import.meta.url)('#package') as { version: string }).version;
}
