/** `estimate <input>`: tokens, money and time before spending; calls nothing, stores nothing. */
import type { Command } from 'commander';
import type { CommandContext } from '../app/context.js';
import { lookAtInput } from '../app/look-at-input.js';
import type { ResolvedSettings } from '../config/load.js';
import type { Settings } from '../config/settings.js';
import { parseCount, parseDuration, parseGiven, parseRange } from '../config/values.js';
import { EXIT_CODES, type ExitCode, usageError } from '../core/errors.js';
import { printableJson } from '../core/foreign-text.js';
import type { EstimateOptions, EstimateReport } from '../runs/estimate/estimate-input.js';
import type { TokenRange } from '../runs/estimate/output-assumption.js';
import type { RunSettings } from '../runs/run-settings.js';
import type { Action, Verb } from './action.js';
import { runSettingsFrom } from './asked-settings.js';
import { addInputArgument, shownInput } from './input-argument.js';
import { printPage } from './print-page.js';
import { addOtherRunFlags, addSettingFlags, collect, readSettings } from './setting-flags.js';

const EXAMPLES = `
Examples:
  llm-batch estimate reviews.jsonl --prompt 'Classify the sentiment: {{text}}' --output-tokens 5
  llm-batch estimate reviews.jsonl --model gpt-4o-mini --model gpt-4.1-nano --model gpt-5-mini
  llm-batch estimate requests.jsonl --rpm 500 --tpm 200k --latency 2s --daily 50000
  llm-batch estimate huge.jsonl.gz --exact --json | jq '.models[0].cost_usd.batch'`;

/** Of the settings that a run has, those that change an estimate. */
const SHOWN: readonly (keyof Settings)[] = [
  'inputFormat',
  'query',
  'maxLineBytes',
  'baseUrl',
  'apiKeyEnv',
  'prices',
  'concurrency',
  'rpm',
  'tpm',
  'rpd',
  'groupUrl',
  'groupMax',
  'dedupe',
  'quiet',
  'color',
  'debug',
];

export function registerEstimate(program: Command, action: Action): void {
  const command = addInputArgument(program.command('estimate'))
    .description('tokens, money and time before spending; --model may be repeated to compare models')
    .addHelpText('after', EXAMPLES);
  addSettingFlags(command, ['request']);
  const models: string[] = [];
  command.on('option:model', (model: string) => models.push(model));
  command
    .option('--param <name=value>', 'request parameter, e.g. max_tokens=50; may be repeated', collect)
    .option(
      '--output-tokens <n|range>',
      'length of an answer, e.g. 5 or 20..400 (default: assumed, up to its cap)',
    )
    .option('--latency <time>', 'how long a call takes, e.g. 2s (default: assumed)')
    .option('--daily <n>', 'also the money and time for so many documents a day')
    .option('--exact', 'count every document, however many; else a sample of a large input')
    .option('--simulate', 'count tokens as the simulator does, to compare with a rehearsal')
    .option('--json', 'as JSON on standard output');
  addOtherRunFlags(command, SHOWN).action(
    action((verb, inputs: readonly string[], options: EstimateCommandOptions) =>
      estimate(verb, inputs, models, options),
    ),
  );
}

interface EstimateCommandOptions {
  readonly param?: readonly string[];
  readonly outputTokens?: string;
  readonly latency?: string;
  readonly daily?: string;
  readonly exact?: boolean;
  readonly simulate?: boolean;
  readonly json?: boolean;
}

async function estimate(
  verb: Verb,
  inputs: readonly string[],
  models: readonly string[],
  options: EstimateCommandOptions,
): Promise<ExitCode> {
  const { context } = verb;
  const resolved = await readSettings(verb);
  const runSettings = await runSettingsFrom(resolved, { inputs, ...options }, context.workingFolder);
  const report = await showEstimate(context, resolved, runSettings, inputs, {
    models,
    exact: options.exact ?? false,
    outputTokens: outputTokensOf(options.outputTokens),
    latencyMs: parsedFlag('latency', options.latency, parseDuration),
    dailyDocuments: parsedFlag('daily', options.daily, parseCount),
    json: options.json ?? false,
  });
  return report === 'interrupted' ? EXIT_CODES.interrupted : EXIT_CODES.completed;
}

type ShowEstimateOptions = Pick<
  EstimateOptions,
  'models' | 'exact' | 'outputTokens' | 'latencyMs' | 'dailyDocuments'
> & { readonly json: boolean };

/** Estimates and prints it on standard output. */
export async function showEstimate(
  context: CommandContext,
  { settings }: ResolvedSettings,
  runSettings: RunSettings,
  inputs: readonly string[],
  { json, ...options }: ShowEstimateOptions,
): Promise<EstimateReport | 'interrupted'> {
  const { estimateInput } = await import('../runs/estimate/estimate-input.js');
  const report = await lookAtInput(context, settings, runSettings, inputs, (reading) =>
    estimateInput({ ...reading, ...options }),
  );
  if (report === 'interrupted') return report;
  const inputName = shownInput(inputs);
  if (json) {
    const { estimateJson } = await import('./estimate-json.js');
    context.stdout.write(`${printableJson(estimateJson(inputName, report))}\n`);
  } else {
    const { renderEstimate } = await import('../ui/estimate-page.js');
    printPage(context, settings, (appearance) => renderEstimate(report, inputName, appearance));
  }
  return report;
}

/** Embeddings have no output: 0 is a length too. */
function parseLength(text: string): number {
  return text.trim() === '0' ? 0 : parseCount(text);
}

function outputTokensOf(text: string | undefined): TokenRange | null {
  if (text === undefined) return null;
  const range = parseRange(text, (end) => parseGiven('ESTIMATE_OPTION', '--output-tokens', end, parseLength));
  if (range.high >= range.low) return range;
  throw usageError('ESTIMATE_OPTION', `Expected --output-tokens to rise from low to high, got "${text}".`);
}

function parsedFlag<Value>(
  flag: string,
  text: string | undefined,
  parse: (text: string) => Value,
): Value | null {
  return text === undefined ? null : parseGiven('ESTIMATE_OPTION', `--${flag}`, text, parse);
}
