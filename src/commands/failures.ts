/** `failures [run]`: the dead letters, grouped by kind, each with an example and what to do. */
import type { Command } from 'commander';
import { withStore } from '../app/open-store.js';
import { EXIT_CODES, type ExitCode } from '../core/errors.js';
import { parseExact, stringifyExact } from '../core/exact-json.js';
import { escapedJson } from '../core/foreign-text.js';
import { idJson } from '../results/result-line.js';
import { readFailures } from '../runs/failure-groups.js';
import { findRun } from '../runs/find-run.js';
import { adviceOn } from '../ui/failure-advice.js';
import { renderFailures } from '../ui/failures-page.js';
import type { Action, Verb } from './action.js';
import { printPage } from './print-page.js';
import { addSettingFlags, readSettings } from './setting-flags.js';

const EXAMPLES = `
Examples:
  llm-batch failures
  llm-batch failures reviews --json | jq '.failures[].example'`;

export function registerFailures(program: Command, action: Action): void {
  const command = program
    .command('failures')
    .argument('[run]', 'name of the run; default: the newest unfinished one, else the newest')
    .description('the failed documents by kind, with an example, the request id and what to do')
    .addHelpText('after', EXAMPLES)
    .option('--json', 'as JSON on standard output');
  addSettingFlags(command, ['store', 'display']).action(action(failures));
}

interface FailuresOptions {
  readonly json?: boolean;
}

async function failures(
  verb: Verb,
  runName: string | undefined,
  options: FailuresOptions,
): Promise<ExitCode> {
  const { context } = verb;
  const { settings } = await readSettings(verb);
  return withStore(context, settings, 'read', async (store) => {
    const run = await findRun(store, runName);
    const groups = await readFailures(store, run.id);
    if (options.json) {
      const report = groups.map(({ kind, count, codes, example }) => ({
        kind,
        count,
        codes: codes.map(({ code, count }) => ({ code, count })),
        example: {
          id: parseExact(idJson(example)),
          line: example.line,
          message: example.error.message,
          http_status: example.error.httpStatus,
          code: example.error.code,
          request_id: example.error.requestId,
        },
        advice: adviceOn(example.error).advice,
      }));
      context.stdout.write(`${escapedJson(stringifyExact({ run: run.name, failures: report }))}\n`);
    } else {
      printPage(context, settings, (appearance) => renderFailures(run.name, groups, appearance));
    }
    return EXIT_CODES.completed;
  });
}
