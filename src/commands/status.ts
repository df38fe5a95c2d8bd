/** `status [run]`: where a run stands, once or again and again, as a page or as JSON. */
import type { Command } from 'commander';
import type { CommandContext } from '../app/context.js';
import { withStore } from '../app/open-store.js';
import type { Settings } from '../config/settings.js';
import { EXIT_CODES, type ExitCode } from '../core/errors.js';
import { printableJson } from '../core/foreign-text.js';
import { draw } from '../core/terminal-gate.js';
import { withPresentFiles } from '../results/run-files.js';
import { findRun } from '../runs/find-run.js';
import { inspectRun, type RunInspection } from '../runs/inspect-run.js';
import { appearanceOf } from '../ui/colours.js';
import { renderStatus } from '../ui/status-page.js';
import type { Action, Verb } from './action.js';
import { addSettingFlags, readSettings } from './setting-flags.js';
import { statusJson } from './status-json.js';

const WATCH_EVERY_MS = 1_000;
const CLEAR_SCREEN = '\u001b[H\u001b[2J';

const EXAMPLES = `
Examples:
  llm-batch status
  llm-batch status reviews --watch
  llm-batch status --json | jq .documents`;

export function registerStatus(program: Command, action: Action): void {
  const command = program
    .command('status')
    .argument('[run]', 'name of the run; default: the newest unfinished one, else the newest')
    .description('counts, rate, tokens, cost, latency and failures of a run, also while it goes on')
    .addHelpText('after', EXAMPLES)
    .option('--watch', 'show it again every second until the run ends or Ctrl-C')
    .option('--json', 'as JSON on standard output, one line a look');
  addSettingFlags(command, ['store', 'display']).action(action(status));
}

interface StatusOptions {
  readonly watch?: boolean;
  readonly json?: boolean;
}

async function status(verb: Verb, runName: string | undefined, options: StatusOptions): Promise<ExitCode> {
  const { context } = verb;
  const { settings } = await readSettings(verb);
  return withStore(context, settings, 'read', async (store) => {
    const leave = new AbortController();
    context.interrupts.subscribe(() => leave.abort());
    for (;;) {
      const inspection = await inspectRun(store, await findRun(store, runName), context.clock);
      // While it goes on, it is of use to know where they will be.
      const run = inspection.owner === null ? withPresentFiles(inspection.run) : inspection.run;
      show({ ...inspection, run }, context, settings, options);
      if (!options.watch || inspection.owner === null || leave.signal.aborted) return EXIT_CODES.completed;
      await context.clock.sleep(WATCH_EVERY_MS, leave.signal);
      if (leave.signal.aborted) return EXIT_CODES.completed;
    }
  });
}

function show(
  inspection: RunInspection,
  context: CommandContext,
  settings: Settings,
  options: StatusOptions,
): void {
  const { stdout, environment } = context;
  if (options.json) {
    stdout.write(`${printableJson(statusJson(inspection))}\n`);
    return;
  }
  const appearance = appearanceOf(stdout, environment, settings.color, context.command);
  const lines = renderStatus(inspection, appearance);
  const clear = options.watch === true && stdout.isTTY === true ? CLEAR_SCREEN : '';
  draw(stdout, (safe) => clear + safe(`${lines.join('\n')}\n`));
}
