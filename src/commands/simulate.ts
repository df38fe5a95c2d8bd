/** `simulate`: an OpenAI-compatible server on this machine, to rehearse against until Ctrl-C. */
import type { Command } from 'commander';
import type { CommandContext } from '../app/context.js';
import { parseCount, parseDuration } from '../config/values.js';
import { EXIT_CODES, type ExitCode, usageError } from '../core/errors.js';
import { isJsonObject, type JsonObject } from '../core/json.js';
import type { Action } from './action.js';
import { collect } from './repeated-flag.js';

const EXAMPLES = `
Examples:
  llm-batch simulate --rpm 600 --latency 200ms..2s
  llm-batch simulate --error-rate 500=0.02 --error-rate reset=0.01 --log calls.jsonl
  llm-batch simulate --options '{"outage":{"fault":"503","afterMs":10000,"forMs":30000}}'
  llm-batch simulate --options '{"batches":{"durationMs":60000,"faults":["expire"]}}'

A document steers its own answer with a directive in its text, such as [[simulate:429-then-ok]],
[[simulate:hang]] or [[simulate:refuse]]. Books: GET /simulator/books.`;

export function registerSimulate(program: Command, context: CommandContext, action: Action): void {
  program
    .command('simulate')
    .description(
      'an OpenAI-compatible server on this machine, to rehearse against; every answer says it is simulated',
    )
    .addHelpText('after', EXAMPLES)
    .option('--port <n>', 'port on 127.0.0.1', '8787')
    .option('--latency <time>', 'time to an answer, or a range such as 200ms..2s', '0ms')
    .option('--output-tokens <n>', 'length of an answer, or a range such as 20..400')
    .option('--rpm <n>', 'requests in any 60 seconds; more are refused with 429')
    .option('--tpm <n>', 'tokens in any 60 seconds')
    .option('--enforce-over <time>', 'shorter window really enforced, e.g. 1s: 600 a minute as 10 a second')
    .option('--charge <what>', "tokens charged: 'used', or 'cap' for prompt and output cap in full")
    .option('--headers <dialect>', 'whose rate-limit headers: openai, none, groq, …')
    .option('--error-rate <fault=share>', 'share of calls that meet a fault; may be repeated', collect)
    .option('--seed <n>', 'for latencies, lengths and faults')
    .option('--log <file>', 'append one JSON line per call')
    .option('--options <json>', 'any further option of the simulator, as JSON')
    .action(action((options: SimulateOptions) => simulate(context, options)));
}

interface SimulateOptions {
  readonly port: string;
  readonly latency: string;
  readonly outputTokens?: string;
  readonly rpm?: string;
  readonly tpm?: string;
  readonly enforceOver?: string;
  readonly charge?: string;
  readonly headers?: string;
  readonly errorRate?: readonly string[];
  readonly seed?: string;
  readonly log?: string;
  readonly options?: string;
}

async function simulate(context: CommandContext, options: SimulateOptions): Promise<ExitCode> {
  const { startSimulator } = await import('../simulator/simulator.js');
  const { clock, random, interrupts, stdout, stderr } = context;
  const simulator = await startSimulator(simulatorOptions(options), { clock, random });
  stdout.write(`${JSON.stringify({ url: simulator.url })}\n`);
  stderr.write(
    `Simulating an OpenAI-compatible server at ${simulator.url} (answers are made up). Ctrl-C ends it.\n` +
      `Next: ${context.command(`llm-batch run input.jsonl --base-url ${simulator.url}`)}\n`,
  );
  await new Promise<void>((resolve) => {
    interrupts.subscribe(() => resolve());
  });
  await simulator.close();
  return EXIT_CODES.completed;
}

function simulatorOptions(options: SimulateOptions): JsonObject {
  const number = (flag: string, text: string | undefined): JsonObject =>
    text === undefined
      ? {}
      : { [flag]: value(flag, text, (given) => (given === '0' ? 0 : parseCount(given))) };
  return {
    ...number('port', options.port),
    latencyMs: range('latency', options.latency, parseDuration),
    ...(options.outputTokens === undefined
      ? {}
      : { outputTokens: range('output-tokens', options.outputTokens, parseCount) }),
    ...number('rpm', options.rpm),
    ...number('tpm', options.tpm),
    ...number('seed', options.seed),
    ...(options.enforceOver === undefined
      ? {}
      : { enforceOverMs: value('enforce-over', options.enforceOver, parseDuration) }),
    ...(options.charge === undefined ? {} : { charge: options.charge }),
    ...(options.headers === undefined ? {} : { headers: options.headers }),
    ...(options.errorRate === undefined ? {} : { errorRate: errorRates(options.errorRate) }),
    ...(options.log === undefined ? {} : { logFile: options.log }),
    ...furtherOptions(options.options),
  };
}

function value(flag: string, text: string, parse: (text: string) => number): number {
  try {
    return parse(text);
  } catch (error) {
    throw usageError(
      'SIMULATOR_OPTION',
      `Expected --${flag} to be ${(error as Error).message}, got "${text}".`,
    );
  }
}

function range(flag: string, text: string, parse: (text: string) => number) {
  const [first = '', last] = text.split('..');
  const min = value(flag, first, parse);
  return last === undefined ? min : { min, max: value(flag, last, parse) };
}

function errorRates(texts: readonly string[]): JsonObject {
  return Object.fromEntries(
    texts.map((text) => {
      const [fault = '', share] = text.split('=');
      if (share === undefined || Number.isNaN(Number(share))) {
        throw usageError(
          'SIMULATOR_OPTION',
          `Expected --error-rate to be a fault and its share, got "${text}".`,
          '--error-rate 500=0.02',
        );
      }
      return [fault, Number(share)];
    }),
  );
}

function furtherOptions(text: string | undefined): JsonObject {
  if (text === undefined) return {};
  let options: unknown;
  try {
    options = JSON.parse(text);
  } catch {
    options = null;
  }
  if (isJsonObject(options)) return options;
  throw usageError(
    'SIMULATOR_OPTION',
    `Expected --options to be a JSON object, got ${JSON.stringify(text)}.`,
  );
}
