/** `serve`: takes tasks over HTTP, sends them, and tells when they are done. */
import type { Command } from 'commander';
import { checkRun } from '../app/composition.js';
import { watchRuns } from '../app/watch-run.js';
import { EXIT_CODES, type ExitCode } from '../core/errors.js';
import { createRequestBuilder } from '../documents/request.js';
import type { Action, Verb } from './action.js';
import { runSettingsFrom } from './asked-settings.js';
import { addSettingFlags, collect, readSettings } from './setting-flags.js';
import { refuseUntrusted } from './stored-reach.js';

const EXAMPLES = `
Examples:
  llm-batch serve --model gpt-4o-mini --rpm 500
  llm-batch serve --base-url http://localhost:11434/v1 --model llama3.2 --port 9000
  LLM_BATCH_SERVE_TOKENS=… LLM_BATCH_WEBHOOK_SECRET=whsec_… llm-batch serve --host 0.0.0.0
  llm-batch serve --simulate      rehearse: nobody is called

  curl -d '{"request":{"messages":[{"role":"user","content":"Hi"}]}}' -H 'content-type: application/json' \\
    http://127.0.0.1:8080/v1/tasks

What it takes and answers: GET /openapi.json, and docs/serve.md.`;

export function registerServe(program: Command, action: Action): void {
  const command = program
    .command('serve')
    .description('take tasks over HTTP, durably, send them, and tell by polling or webhook what they came to')
    .addHelpText('after', EXAMPLES);
  addSettingFlags(command, ['service']);
  // Documents that come over the network name no files of this machine.
  addSettingFlags(command, ['request'], ['imageFolder', 'allowAnyPath', 'requestsAsTheyAre', 'idField']);
  command
    .option('--param <name=value>', 'request parameter, e.g. temperature=0; may be repeated', collect)
    .option('--simulate', 'rehearse against a simulated server on this machine: free, nobody is called');
  addSettingFlags(command, ['input'], ['inputFormat', 'query']);
  addSettingFlags(command, ['connection', 'pacing', 'budget', 'store', 'display']).action(action(serve));
}

interface ServeCommandOptions {
  readonly param?: readonly string[];
  readonly simulate?: boolean;
}

async function serve(verb: Verb, options: ServeCommandOptions): Promise<ExitCode> {
  const { context } = verb;
  const resolved = await readSettings(verb);
  const runSettings = await runSettingsFrom(resolved, { inputs: ['-'], ...options }, context.workingFolder);
  createRequestBuilder(runSettings.request);
  await checkRun(runSettings, context);
  const { runService } = await import('../app/run-service.js');
  const { settings } = resolved;
  const { tell, say, close } = watchRuns(context, settings);
  try {
    await runService(context, {
      ...{ settings, runSettings, tell },
      checkTrust: (storedSettings) => refuseUntrusted(context, storedSettings, resolved),
      onListening(url) {
        // For programs; a person reads the sentence, and has it drawn over by nothing.
        if (context.stdout.isTTY !== true) context.stdout.write(`${JSON.stringify({ url })}\n`);
        say(`Listening on ${url}. Ctrl-C ends it.`);
      },
      notice: (message) => tell({ type: 'warning', message }, null),
    });
  } finally {
    close();
  }
  return EXIT_CODES.completed;
}
