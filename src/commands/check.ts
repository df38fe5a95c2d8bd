/** `check <input>`: everything that a run of it would meet, with line numbers; calls nothing, stores nothing. */
import type { Command } from 'commander';
import { lookAtInput } from '../app/look-at-input.js';
import type { Settings } from '../config/settings.js';
import { EXIT_CODES, type ExitCode } from '../core/errors.js';
import { printableJson } from '../core/foreign-text.js';
import type { CheckReport } from '../runs/check/check-input.js';
import { countFindings, renderCheck } from '../ui/check-page.js';
import { FINDING_WORDS } from '../ui/finding-words.js';
import { lineReason } from '../ui/line-words.js';
import type { Action, Verb } from './action.js';
import { runSettingsFrom } from './asked-settings.js';
import { addInputArgument, shownInput } from './input-argument.js';
import { printPage } from './print-page.js';
import { addOtherRunFlags, addSettingFlags, collect, readSettings } from './setting-flags.js';

const EXAMPLES = `
Examples:
  llm-batch check reviews.jsonl --prompt 'Classify the sentiment: {{text}}'
  llm-batch check batch.jsonl                     a Batch API file: its rules are checked too
  llm-batch check requests.jsonl --json | jq '.problems[] | select(.severity == "error")'
  zcat docs.jsonl.gz | llm-batch check - --prompt-file prompt.txt --model gpt-4.1-mini

Exit codes: 0 a run would send every line · 2 it would not, or some documents would fail for sure.`;

/** Of the settings that a run has, those that change what is found. */
const SHOWN: readonly (keyof Settings)[] = [
  'inputFormat',
  'query',
  'maxLineBytes',
  'baseUrl',
  'prices',
  'tpm',
  'quiet',
  'color',
  'debug',
];

export function registerCheck(program: Command, action: Action): void {
  const command = addInputArgument(program.command('check'))
    .description('report every problem that a run of this input would meet; nothing is called or stored')
    .addHelpText('after', EXAMPLES);
  addSettingFlags(command, ['request']);
  command
    .option('--param <name=value>', 'request parameter, e.g. max_tokens=50; may be repeated', collect)
    .option('--json', 'as JSON on standard output');
  addOtherRunFlags(command, SHOWN).action(action(check));
}

interface CheckOptions {
  readonly param?: readonly string[];
  readonly json?: boolean;
}

async function check(verb: Verb, inputs: readonly string[], options: CheckOptions): Promise<ExitCode> {
  const { context } = verb;
  const { checkInput } = await import('../runs/check/check-input.js');
  const resolved = await readSettings(verb);
  const runSettings = await runSettingsFrom(resolved, { inputs, ...options }, context.workingFolder);
  const report = await lookAtInput(context, resolved.settings, runSettings, inputs, checkInput);
  if (report === 'interrupted') return EXIT_CODES.interrupted;

  const inputName = shownInput(inputs);
  const { errors } = countFindings(report.findings);
  if (options.json) {
    context.stdout.write(`${printableJson(checkJson(inputName, report))}\n`);
  } else if (!resolved.settings.quiet || errors > 0) {
    printPage(context, resolved.settings, (appearance) => renderCheck(report, inputName, appearance));
  }
  return errors > 0 ? EXIT_CODES.usage : EXIT_CODES.completed;
}

/** A contract with scripts: fields are added, never renamed. */
function checkJson(inputName: string, report: CheckReport): object {
  const { errors, warnings } = countFindings(report.findings);
  return {
    input: inputName,
    ok: errors === 0,
    lines: report.lines,
    documents: report.documents,
    bad_lines: report.badLines,
    errors,
    warnings,
    models: report.models.map(({ model, documents, contextWindowTokens, maxOutputTokens }) => ({
      model,
      documents,
      context_window_tokens: contextWindowTokens,
      max_output_tokens: maxOutputTokens,
    })),
    problems: report.findings.map(({ kind, severity, count, examples }) => ({
      kind,
      severity,
      count,
      what: FINDING_WORDS[kind].many,
      advice: FINDING_WORDS[kind].advice,
      examples: examples.map((example) => ({ ...example, message: lineReason(example.message) })),
    })),
  };
}
