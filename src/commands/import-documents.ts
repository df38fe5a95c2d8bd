/** Brings the documents of an input into its run: a first import, or an edited input's plan and its carrying out. */
import { usageError } from '../core/errors.js';
import { openInput } from '../documents/input.js';
import { readDocuments } from '../documents/read.js';
import { RejectsWriter } from '../results/rejects.js';
import {
  applyImport,
  ImportInterrupted,
  type ImportOptions,
  type ImportPlan,
  importNew,
  planImport,
} from '../runs/import-input.js';
import { type RunSettings, settingsToJson } from '../runs/run-settings.js';
import type { NewRun, RunRecord, Store } from '../store/store.js';
import type { CommandContext } from './context.js';
import type { Display } from './display.js';
import { spoolStandardInput } from './standard-input.js';

export interface BringInOptions {
  readonly context: CommandContext;
  readonly display: Display;
  readonly store: Store;
  /** The run that goes on; null for a new one. */
  readonly existing: RunRecord | null;
  readonly newRun: NewRun;
  readonly settings: RunSettings;
  readonly maxLineBytes: number;
  /** What becomes of documents that changed after they were answered. */
  readonly changed: 'ask' | 'rerun' | 'keep';
  readonly skipBadLines: boolean;
  readonly rejectsPath: string;
  readonly mayReplaceRejects: boolean;
}

/**
 * @returns the run, ready to be drained; `interrupted` when the user stopped the import
 * @throws LlmBatchError (exit 2) for bad lines, an unreadable or empty input, or answers that would be paid for again
 */
export async function bringIn(options: BringInOptions): Promise<RunRecord | 'interrupted'> {
  const { context, display, store, existing } = options;
  const rejects = new RejectsWriter(options.rejectsPath, { mayReplace: options.mayReplaceRejects });
  const stopping = new AbortController();
  const stopListening = context.interrupts.subscribe(() => stopping.abort());
  // Standard input can be read once only, an import of a run that exists reads twice.
  const spool =
    options.newRun.inputPath === '-' && existing !== null ? await spoolStandardInput(context) : null;
  const importOptions = (run: RunRecord): ImportOptions => ({
    store,
    run,
    readPages: () => pagesOf(options, spool?.path ?? options.newRun.inputPath),
    skipBadLines: options.skipBadLines,
    signal: stopping.signal,
    onProgress: (progress) => display.importing(progress),
    async onBadLines(bad) {
      display.badLines(bad);
      if (options.skipBadLines) for (const each of bad) await rejects.write(each);
    },
  });
  let run = existing;
  try {
    display.startImport();
    if (existing === null) {
      run = await store.createRun(options.newRun);
      const report = await importNew(importOptions(run));
      display.imported(run, report, await rejects.finish());
      return { ...run, status: 'open' };
    }
    const plan = await planImport(importOptions(existing));
    display.planned(existing, plan, await rejects.finish());
    refuseRepeatedPayment(existing, plan, options.changed);
    // The new settings hold from here on: what is open is sent as the user asks now.
    run = await store.updateRun(existing.id, { settings: settingsToJson(options.settings) });
    await applyImport(importOptions(run), options.changed === 'keep');
    return { ...run, status: 'open' };
  } catch (error) {
    await rejects.abort();
    if (!(error instanceof ImportInterrupted)) throw error;
    display.importInterrupted();
    return 'interrupted';
  } finally {
    display.stop();
    stopListening();
    await spool?.remove();
  }
}

async function* pagesOf(options: BringInOptions, path: string) {
  const { context, settings, maxLineBytes } = options;
  const input = await openInput(path, { cwd: context.workingFolder, stdin: context.stdin });
  try {
    options.display.importTotal(input.totalBytes);
    yield* readDocuments(input, { settings: settings.request, maxLineBytes });
  } finally {
    await input.close();
  }
}

function refuseRepeatedPayment(run: RunRecord, plan: ImportPlan, changed: BringInOptions['changed']): void {
  if (plan.changedFinished === 0 || changed !== 'ask') return;
  throw usageError(
    'CHANGED_ANSWERED',
    `${plan.changedFinished} documents of run '${run.name}' have an answer already, but would now be sent differently; nothing was called or changed.`,
    '--rerun-changed to pay for them again, --keep to keep the answers they have, or --name for a run of its own',
  );
}
