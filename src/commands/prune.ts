/** `prune`: deletes runs that nobody has used for a while, and gives their room back. */
import type { Command } from 'commander';
import { withStore } from '../app/open-store.js';
import { parseDuration } from '../config/values.js';
import { EXIT_CODES, type ExitCode, usageError } from '../core/errors.js';
import { printable } from '../core/foreign-text.js';
import {
  findRunsToPrune,
  type OldRun,
  type PruneChoice,
  type PruneReport,
  pruneRuns,
} from '../runs/prune-runs.js';
import { shellWord } from '../ui/next-command.js';
import { formatBytes, formatQuantity } from '../ui/numbers.js';
import { renderOldRuns } from '../ui/prune-page.js';
import type { Action, Verb } from './action.js';
import { confirm } from './confirm.js';
import { printPage } from './print-page.js';
import { addSettingFlags, readSettings } from './setting-flags.js';

const EXAMPLES = `
Examples:
  llm-batch prune reviews                       this run alone
  llm-batch prune --older-than 30d --dry-run    only list them
  llm-batch prune --older-than 30d --yes        in a script

The run that is being drained or imported is never deleted. Results files stay where they are.`;

export function registerPrune(program: Command, action: Action): void {
  const command = program
    .command('prune')
    .argument('[run...]', 'names of runs; instead of an age')
    .description(
      'delete runs, answers and all, and give their room back: those named, or those last active long ago',
    )
    .addHelpText('after', EXAMPLES)
    .option('--older-than <time>', 'time without activity, with its unit: 30d, 12h')
    .option('--dry-run', 'only list the runs that would be deleted')
    .option('-y, --yes', 'do not ask');
  addSettingFlags(command, ['store', 'display']).action(action(prune));
}

interface PruneFlags {
  readonly olderThan?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

async function prune(verb: Verb, names: readonly string[], flags: PruneFlags): Promise<ExitCode> {
  const { context } = verb;
  const { settings } = await readSettings(verb);
  const { clock, stderr, interrupts } = context;
  const wanted = wantedRuns(names, flags);
  return withStore(context, settings, flags.dryRun ? 'read' : 'change', async (store) => {
    const nowMs = clock.now();
    const old = await findRunsToPrune(store, wanted, nowMs);
    if (old.length > 0) printPage(context, settings, (appearance) => renderOldRuns(old, nowMs, appearance));
    stderr.write(context.command(leftAtProvider(old)));
    if (flags.dryRun) {
      stderr.write(`${describe(old, wanted)} Nothing was deleted.\n`);
      return EXIT_CODES.completed;
    }
    if (old.length > 0 && !(await confirm(context, question(old), flags.yes ?? false))) {
      stderr.write('Nothing was deleted.\n');
      return EXIT_CODES.interrupted;
    }
    const leave = new AbortController();
    const stopListening = interrupts.subscribe(() => leave.abort());
    const report = await pruneRuns(
      store,
      old.map(({ run }) => run),
      { clock, signal: leave.signal },
    ).finally(stopListening);
    stderr.write(`${context.command(outcome(old, report, wanted))}\n`);
    return report.isComplete ? EXIT_CODES.completed : EXIT_CODES.interrupted;
  });
}

type WantedRuns = PruneChoice & { readonly age: string | null };

/** @throws LlmBatchError (exit 2) PRUNE_WHAT, AGE_INVALID */
function wantedRuns(names: readonly string[], { olderThan }: PruneFlags): WantedRuns {
  if ((names.length === 0) === (olderThan === undefined)) {
    throw usageError(
      'PRUNE_WHAT',
      names.length === 0
        ? 'Nothing says which runs are to be deleted.'
        : 'Runs are deleted by name or by age, not by both.',
      'name runs, as `llm-batch list` shows them, or give an age: --older-than 30d',
    );
  }
  return { names, olderThanMs: olderThan === undefined ? 0 : parseAge(olderThan), age: olderThan ?? null };
}

/** A bare number would mean seconds, as for every other setting, where days were meant. */
function parseAge(text: string): number {
  try {
    if (!/^\s*[\d.]+\s*$/.test(text)) return parseDuration(text);
  } catch {}
  throw usageError(
    'AGE_INVALID',
    `Expected --older-than to be a time with its unit, got ${JSON.stringify(text)}.`,
    'for example 30d, 12h or 1d12h',
  );
}

/** A deleted run fetches nothing any more, and what is handed in is worked off and billed all the same. */
function leftAtProvider(old: readonly OldRun[]): string {
  return old
    .filter(({ openBatches }) => openBatches > 0)
    .map(
      ({ run: { name }, openBatches }) =>
        `${printable(name)} has work with its provider (${formatQuantity(openBatches, 'batch', 'batches')}), which goes on and is billed when the run is deleted: \`llm-batch cancel ${shellWord(name)}\` cancels it first.\n`,
    )
    .join('');
}

function describe(old: readonly OldRun[], { age }: WantedRuns): string {
  if (age === null && old.length === 0) return 'A run that is imported or sent now is not deleted.';
  if (age === null) return `${formatQuantity(old.length, 'run')} would be deleted.`;
  if (old.length === 0) return `No run was last active more than ${age} ago.`;
  return `${formatQuantity(old.length, 'run')} last active more than ${age} ago.`;
}

function question(old: readonly OldRun[]): string {
  const documents = old.reduce((sum, run) => sum + run.documents, 0);
  const runs = old.length === 1 ? 'this run' : `these ${formatQuantity(old.length, 'run')}`;
  return `Delete ${runs} for good, with the answers to ${formatQuantity(documents, 'document')}?`;
}

function outcome(old: readonly OldRun[], report: PruneReport, wanted: WantedRuns): string {
  const { deleted, reclaimedBytes, isComplete } = report;
  const spared = old.length - deleted.length;
  const parts = [
    old.length === 0 ? describe(old, wanted) : `${formatQuantity(deleted.length, 'run')} deleted.`,
    isComplete && spared > 0 ? `${formatQuantity(spared, 'run')} left: in use again, or gone already.` : '',
    reclaimedBytes > 0 ? `${formatBytes(reclaimedBytes)} given back to the file system.` : '',
    isComplete ? '' : 'Interrupted before all of their room was free; `llm-batch prune` goes on.',
  ];
  return parts.filter((part) => part !== '').join(' ');
}
