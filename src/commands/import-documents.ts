/** Brings the documents of an input into its run: a first import, or an edited input's plan and its carrying out. */

import type { CommandContext } from '../app/context.js';
import { usageError } from '../core/errors.js';
import type { InputFormat } from '../core/input-format.js';
import type { NewRun, RunRecord } from '../core/run.js';
import { type FirstDocument, readDocuments } from '../documents/read.js';
import { openInput } from '../input/input.js';
import type { InputDescription } from '../input/input-description.js';
import { RejectsWriter } from '../results/rejects.js';
import {
  applyImport,
  ImportInterrupted,
  type ImportOptions,
  type ImportPlan,
  importNew,
  planImport,
} from '../runs/import-input.js';
import { lanesOf, type RunSettings, settingsOfRun, settingsToJson } from '../runs/run-settings.js';
import { answererOf, answererSoFar } from '../runs/share-answers.js';
import type { Store } from '../store/store.js';
import type { Display } from './display.js';
import { noteWrittenFile } from './outputs.js';
import { type SpooledInput, spoolStandardInput } from './standard-input.js';

export interface BringInOptions {
  readonly context: CommandContext;
  readonly display: Display;
  readonly store: Store;
  /** The run that goes on; null for a new one. */
  readonly existing: RunRecord | null;
  readonly newRun: NewRun;
  readonly settings: RunSettings;
  /** Paths, a pattern or `-`, as the user gave them. */
  readonly inputs: readonly string[];
  readonly inputFormat: InputFormat | null;
  /** Of a database. */
  readonly query: string | null;
  readonly maxLineBytes: number;
  /** What becomes of documents that changed after they were answered. */
  readonly changed: 'ask' | 'rerun' | 'keep';
  readonly skipBadLines: boolean;
  readonly rejectsPath: string;
  /** A rejects file may be replaced whoever wrote it. */
  readonly force: boolean;
}

/**
 * @returns the run, ready to be drained; `interrupted` when the user stopped the import
 * @throws LlmBatchError (exit 2) for bad lines, an unreadable or empty input, or answers that would be paid for again
 */
export async function bringIn(options: BringInOptions): Promise<RunRecord | 'interrupted'> {
  const { context, display, store, existing } = options;
  const rejects = new RejectsWriter(options.rejectsPath, {
    mayReplace: options.force || (existing?.writtenFiles ?? []),
    onComplete: async (file) => {
      if (run !== null) await noteWrittenFile(store, run.id, file);
    },
  });
  const stopping = new AbortController();
  const isStandardInput = options.newRun.inputPath === '-';
  const stopListening = context.interrupts.subscribe(() => {
    stopping.abort();
    // A read that waits for whoever writes there would not notice.
    if (isStandardInput) context.stdin.destroy();
  });
  let spool: SpooledInput | null = null;
  const importOptions = (run: RunRecord): ImportOptions => ({
    store,
    run,
    readPages: () =>
      pagesOf(options, spool === null ? options.inputs : [spool.path], seen, describeNew, stopping.signal),
    skipBadLines: options.skipBadLines,
    signal: stopping.signal,
    onProgress: (progress) => display.importing(progress),
    async onBadLines(bad) {
      display.badLines(bad);
      if (options.skipBadLines) for (const each of bad) await rejects.write(each);
    },
  });
  const seen: InputSeen = { first: null, withoutTemplate: 0, input: null };
  let run = existing;
  /** Before the first task: whatever happens then, what is imported can be written again in the input's shape. */
  const describeNew = async (input: InputDescription): Promise<void> => {
    if (existing !== null || run === null) return;
    const settings = settingsToJson({ ...options.settings, input }, store.folder);
    run = await store.updateRun(run.id, { settings });
  };
  try {
    display.startImport();
    // Standard input can be read once only, an import of a run that exists reads twice.
    if (isStandardInput && existing !== null) spool = await spoolStandardInput(context, stopping.signal);
    if (existing === null) {
      run = await store.createRun(options.newRun);
      const report = await importNew(importOptions(run));
      display.stop();
      display.rejected(await rejects.finish());
      display.imported(run, report);
      tellPlan(options, seen);
      return { ...run, status: 'open' };
    }
    const answerers = {
      soFar: await answererSoFar(store, existing),
      fromNowOn: answererOf(options.settings),
    };
    const plan = await planImport(importOptions(existing), answerers);
    display.stop();
    display.rejected(await rejects.finish());
    display.planned(existing, plan);
    refuseRepeatedPayment(existing, plan, options.changed);
    const { prices } = settingsOfRun(existing);
    const settings = {
      ...options.settings,
      ...(seen.input === null ? {} : { input: seen.input }),
      // Of the answers that are there; the next call notes its own.
      ...(prices === undefined ? {} : { prices }),
    };
    const reimport = { keepFinished: options.changed === 'keep', answerers };
    run = await applyImport(importOptions(existing), reimport, settingsToJson(settings, store.folder));
    tellPlan(options, seen);
    return run;
  } catch (error) {
    await rejects.abort();
    if (!(error instanceof ImportInterrupted)) throw error;
    display.importInterrupted(options.newRun.inputPath);
    return 'interrupted';
  } finally {
    display.stop();
    display.reportBadLines(options.newRun.inputPath);
    stopListening();
    await spool?.remove();
  }
}

/** What the pages of an input showed on their way by. */
interface InputSeen {
  first: FirstDocument | null;
  withoutTemplate: number;
  input: InputDescription | null;
}

/** Before the first call: what is sent, to which model, and what the user may not have expected. */
function tellPlan({ display, settings }: BringInOptions, { first, withoutTemplate }: InputSeen): void {
  if (first === null) return;
  const message =
    first.form !== 'record'
      ? 'the requests as they are'
      : first.promptField === null
        ? 'the rendered prompt'
        : `the field '${first.promptField}'`;
  const hosts = new Set(lanesOf(settings).map((lane) => new URL(lane.baseUrl).host));
  const endpoint = settings.simulator === null ? [...hosts].join(', ') : 'the simulator';
  display.sending({ message, model: first.model, endpoint });
  if (withoutTemplate > 0) {
    display.warn(`${withoutTemplate} documents are whole requests; --prompt was not used for them.`);
  }
}

async function* pagesOf(
  options: BringInOptions,
  names: readonly string[],
  seen: InputSeen,
  onOpened: (input: InputDescription) => Promise<void>,
  signal: AbortSignal,
) {
  seen.withoutTemplate = 0;
  const { context, settings, maxLineBytes } = options;
  const input = await openInput(names, {
    cwd: context.workingFolder,
    stdin: context.stdin,
    format: options.inputFormat,
    query: options.query,
    signal,
  });
  try {
    seen.input = input.description;
    await onOpened(input.description);
    options.display.importTotal(input.totalBytes);
    for await (const page of readDocuments(input, { settings: settings.request, maxLineBytes })) {
      seen.first ??= page.first;
      seen.withoutTemplate += page.withoutTemplate;
      yield page;
    }
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
