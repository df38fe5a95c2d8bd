/** `run --dry-run`: the estimate of the very run that the same command would start, and what would keep it from starting. */

import type { CommandContext } from '../app/context.js';
import type { ResolvedSettings } from '../config/load.js';
import { EXIT_CODES, type ExitCode } from '../core/errors.js';
import type { Choice } from '../core/event.js';
import type { EstimateReport } from '../runs/estimate/estimate-input.js';
import type { RunSettings } from '../runs/run-settings.js';
import { formatCount, formatMoney, formatQuantity } from '../ui/numbers.js';
import { showEstimate } from './estimate.js';
import { withRunOf } from './kept-server.js';

export interface DryRunOptions {
  readonly context: CommandContext;
  readonly resolved: ResolvedSettings;
  readonly runSettings: RunSettings;
  /** As given on the command line. */
  readonly inputs: readonly string[];
  /** What the run is found by. */
  readonly wanted: Omit<Parameters<typeof withRunOf>[2], 'simulated'>;
  readonly skipBadLines: boolean;
  /** To be tried; null: all. */
  readonly choice: Choice | null;
}

/** @returns 2 where bad lines would stop the run before its first call */
export async function dryRun(options: DryRunOptions): Promise<ExitCode> {
  const { context, resolved, runSettings } = options;
  const { settings } = resolved;
  const report = await showEstimate(context, resolved, runSettings, options.inputs, {
    models: [],
    exact: false,
    outputTokens: null,
    latencyMs: null,
    dailyDocuments: null,
    json: false,
  });
  if (report === 'interrupted') return EXIT_CODES.interrupted;
  const stops = report.badLines > 0 && !options.skipBadLines;
  if (!settings.quiet) {
    const notes = [
      ...batchPriceNote(report, settings.remote),
      ...(options.choice === null ? [] : [triedFirst(options.choice, report)]),
      ...(await answeredBefore(options)),
      stops
        ? `${formatQuantity(report.badLines, 'bad line')} would stop this run before its first call: mend them (llm-batch check lists them) or add --skip-bad-lines`
        : 'dry run: nothing was sent or stored',
    ];
    context.stderr.write(`${context.command(notes.join('\n'))}\n`);
  }
  return stops ? EXIT_CODES.usage : EXIT_CODES.completed;
}

/** The estimate has every way beside one another; this says which of its figures the run would go by. */
function batchPriceNote({ models }: EstimateReport, isRemote: boolean): string[] {
  if (!isRemote) return [];
  const cost = models[0]?.cost.batch ?? null;
  if (cost === null)
    return ['with --remote it is sent in batches, whose price is not known: it is reckoned as sent directly'];
  const [low, high] = [formatMoney(cost.low), formatMoney(cost.high)];
  return [
    `with --remote this run would cost ${low === high ? low : `${low} to ${high}`}, the price of batches`,
  ];
}

/** What of the estimate is of the documents that would be sent now. */
function triedFirst({ by, count }: Choice, { documents, models }: EstimateReport): string {
  const chosen = Math.min(count, documents);
  const cost = models[0]?.cost.direct ?? null;
  const share = documents === 0 ? 0 : chosen / documents;
  const money =
    cost === null ? '' : `, for about ${formatMoney(cost.low * share)} to ${formatMoney(cost.high * share)}`;
  return `--${by} ${count} would send ${formatCount(chosen)} of the ${formatQuantity(documents, 'document')} now${money}`;
}

/** Answers that are there already are not paid for again, which the estimate of the whole input does not know. */
async function answeredBefore({ context, resolved, runSettings, ...run }: DryRunOptions): Promise<string[]> {
  const wanted = { ...run.wanted, simulated: runSettings.simulator !== null };
  const notes = await withRunOf(context, resolved.settings, wanted, async ({ id, name }, store) => {
    const { counts } = await store.summarizeRun(id);
    const answered = counts.completed + counts.failed;
    if (answered === 0) return [];
    const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
    return [
      `this would go on with run '${name}', where ${formatCount(answered)} of ${formatQuantity(all, 'document')} are done: unless they have changed, these cost nothing again`,
    ];
  });
  return notes ?? [];
}
