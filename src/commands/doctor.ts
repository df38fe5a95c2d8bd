/** `doctor`: looks at everything a run depends on, and says what is wrong and how to mend it. */
import type { Command } from 'commander';
import type { Settings } from '../config/settings.js';
import { EXIT_CODES, type ExitCode, type WayOut } from '../core/errors.js';
import { type Diagnosis, worstExitCode } from '../runs/diagnose/diagnose.js';
import { renderFinding, renderVerdict } from '../ui/diagnosis-page.js';
import type { Action, Verb } from './action.js';
import { diagnose } from './diagnosis.js';
import { wayOutOf } from './error-words.js';
import { printPage } from './print-page.js';
import { addSettingFlags, readSettings } from './setting-flags.js';
import { TRUST_STORE_FLAG } from './stored-reach.js';

const EXAMPLES = `
Examples:
  llm-batch doctor                                    as \`run\` would start, or \`resume\` the newest unfinished run
  llm-batch doctor --base-url http://localhost:11434/v1 --model llama3.2
  llm-batch doctor --offline --json

It sends no document and costs nothing: the server is asked for its list of models.`;

/** They make no difference here. */
const HIDDEN: readonly (keyof Settings)[] = [
  'prompt',
  'promptFile',
  'system',
  'idField',
  'schema',
  'jsonMode',
  'repair',
  'prices',
];

export function registerDoctor(program: Command, action: Action): void {
  const command = program
    .command('doctor')
    .argument('[run]', 'check what this run needs to go on; default: the newest unfinished one, if any')
    .description(
      'check the store, the key, the endpoint and the limits; say what is wrong and how to mend it',
    )
    .addHelpText('after', EXAMPLES)
    .option('--offline', 'leave out what needs the network')
    .option('--json', 'as JSON on standard output')
    .option(...TRUST_STORE_FLAG);
  addSettingFlags(command, ['request', 'connection', 'store', 'display'], HIDDEN).action(action(doctor));
}

interface DoctorFlags {
  readonly offline?: boolean;
  readonly json?: boolean;
  readonly trustStore?: boolean;
}

async function doctor(verb: Verb, runName: string | undefined, flags: DoctorFlags): Promise<ExitCode> {
  const { context } = verb;
  const resolved = await readSettings(verb);
  const leave = new AbortController();
  const stopListening = context.interrupts.subscribe(() => leave.abort());
  const findings: Diagnosis[] = [];
  try {
    const checks = diagnose(context, {
      resolved,
      runName,
      offline: flags.offline ?? false,
      trustStore: flags.trustStore ?? false,
      signal: leave.signal,
    });
    for await (const finding of checks) {
      if (leave.signal.aborted) return EXIT_CODES.interrupted;
      findings.push(finding);
      if (flags.json) continue;
      const showLane = (resolved.lanes?.length ?? resolved.settings.apiKeyEnv.length) > 1;
      printPage(context, resolved.settings, (appearance) =>
        renderFinding(finding, adviceOf(finding.wayOut), showLane, appearance),
      );
    }
  } finally {
    stopListening();
  }
  if (leave.signal.aborted) return EXIT_CODES.interrupted;
  const exitCode = worstExitCode(findings);
  if (flags.json) context.stdout.write(`${JSON.stringify(toJson(findings, exitCode))}\n`);
  else printPage(context, resolved.settings, (appearance) => [renderVerdict(findings, appearance)]);
  return exitCode;
}

function toJson(findings: readonly Diagnosis[], exitCode: ExitCode): object {
  return {
    exit_code: exitCode,
    findings: findings.map(({ check, level, lane, message, wayOut }) => ({
      check,
      level,
      lane,
      message,
      advice: adviceOf(wayOut) ?? null,
    })),
  };
}

function adviceOf(wayOut: WayOut | null): string | undefined {
  return wayOut === null ? undefined : wayOutOf(wayOut);
}
