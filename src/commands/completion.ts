/** `completion <shell>`: a script that completes commands, flags, choices and the names of runs. */
import { Readable } from 'node:stream';
import { Argument, type Command } from 'commander';
import { withStore } from '../app/open-store.js';
import { EXIT_CODES, type ExitCode } from '../core/errors.js';
import type { Action, Verb } from './action.js';
import { bashScript } from './completion/bash.js';
import { outlineOf, type ProgramOutline } from './completion/command-outline.js';
import { fishScript } from './completion/fish.js';
import { zshScript } from './completion/zsh.js';
import { addSettingFlags, readSettings } from './setting-flags.js';

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript };

type Shell = keyof typeof SCRIPTS;

const EXAMPLES = `
Examples:
  source <(llm-batch completion bash)        in ~/.bashrc
  source <(llm-batch completion zsh)         in ~/.zshrc, after compinit
  llm-batch completion fish > ~/.config/fish/completions/llm-batch.fish`;

export function registerCompletion(program: Command, action: Action): void {
  program
    .command('completion')
    .addArgument(new Argument('<shell>', 'whose script').choices(Object.keys(SCRIPTS)))
    .description('print a script that lets your shell complete commands, flags and the names of runs')
    .addHelpText('after', EXAMPLES)
    .action(
      action(async ({ context }, shell: Shell) => {
        const write: (outline: ProgramOutline) => string = SCRIPTS[shell];
        context.stdout.write(write(outlineOf(program)));
        return EXIT_CODES.completed;
      }),
    );

  // What the scripts ask; of no use to people.
  const names = program
    .command('run-names', { hidden: true })
    .description('the names of the runs, one a line');
  addSettingFlags(names, ['store']).action(action(runNames));
}

async function runNames({ command, context }: Verb): Promise<ExitCode> {
  // Nobody is asked in the middle of typing.
  const { settings } = await readSettings({ command, context: { ...context, stdin: Readable.from([]) } });
  return withStore(context, settings, 'read', async (store) => {
    for (const { name } of await store.listRuns()) {
      // A name of two lines would be completed as two.
      if (!/[\r\n]/.test(name)) context.stdout.write(`${name}\n`);
    }
    return EXIT_CODES.completed;
  });
}
