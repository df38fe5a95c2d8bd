/** `simulate`: an OpenAI-compatible server on this machine, to rehearse against until Ctrl-C. */
import type { Command } from 'commander';
import { parseCount, parseDuration, parseGiven, parseRange } from '../config/values.js';
import { EXIT_CODES, type ExitCode, usageError } from '../core/errors.js';
import { type Json, type JsonObject, parseJsonObject } from '../core/json.js';
import type { Action, Verb } from './action.js';
import { collect } from './setting-flags.js';

const EXAMPLES = `
Examples:
  llm-batch simulate --rpm 600 --latency 200ms..2s
  llm-batch simulate --error-rate 500=0.02 --error-rate reset=0.01 --log calls.jsonl
  llm-batch simulate --options '{"outage":{"fault":"503","afterMs":10000,"forMs":30000}}'
  llm-batch simulate --options '{"batches":{"durationMs":60000,"faults":["expire"]}}'

A document steers its own answer with a directive in its text, such as [[simulate:429-then-ok]],
[[simulate:hang]] or [[simulate:refuse]]. Books: GET /simulator/books.`;

export function registerSimulate(program: Command, action: Action): void {
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
    .action(action(simulate));
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

async function simulate({ context }: Verb, options: SimulateOptions): Promise<ExitCode> {
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
  const { charge, headers, errorRate, log } = options;
  const parsed = <Value extends Json>(
    flag: string,
    text: string | undefined,
    parse: (text: string) => Value,
  ) => (text === undefined ? undefined : parseGiven('SIMULATOR_OPTION', `--${flag}`, text, parse));
  const given = {
    port: parsed('port', options.port, countOrZero),
    latencyMs: rangeOf('latency', options.latency, parseDuration),
    outputTokens: rangeOf('output-tokens', options.outputTokens, parseCount),
    rpm: parsed('rpm', options.rpm, countOrZero),
    tpm: parsed('tpm', options.tpm, countOrZero),
    seed: parsed('seed', options.seed, countOrZero),
    enforceOverMs: parsed('enforce-over', options.enforceOver, parseDuration),
    ...{ charge, headers, errorRate: errorRate && errorRates(errorRate), logFile: log },
  };
  const isGiven = (entry: [string, Json | undefined]): entry is [string, Json] => entry[1] !== undefined;
  return { ...Object.fromEntries(Object.entries(given).filter(isGiven)), ...furtherOptions(options.options) };
}

function countOrZero(text: string): number {
  return text === '0' ? 0 : parseCount(text);
}

function rangeOf(flag: string, text: string | undefined, parse: (end: string) => number): Json | undefined {
  if (text === undefined) return undefined;
  const { low, high } = parseRange(text, (end) => parseGiven('SIMULATOR_OPTION', `--${flag}`, end, parse));
  return text.includes('..') ? { min: low, max: high } : low;
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
  const options = parseJsonObject(text);
  if (options !== null) return options;
  throw usageError(
    'SIMULATOR_OPTION',
    `Expected --options to be a JSON object, got ${JSON.stringify(text)}.`,
  );
}
