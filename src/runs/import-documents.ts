/** Brings the documents of an input into its run: a first import, or an edited input's plan and its carrying out. */

import { type LlmBatchError, usageError } from '../core/errors.js';
import type { TellEvent } from '../core/event.js';
import type { Remark, RemarkKind } from '../core/remark.js';
import type { NewRun, RunRecord } from '../core/run.js';
import type { StopRequests } from '../core/stop-requests.js';
import type { DocumentPage, FirstDocument } from '../documents/read.js';
import type { BadLine } from '../input/bad-line.js';
import type { InputDescription } from '../input/input-description.js';
import { RejectsWriter } from '../results/rejects.js';
import type { Store } from '../store/store.js';
import { applyImport, ImportInterrupted, type ImportOptions, importNew, planImport } from './import-input.js';
import { noteWrittenFile } from './outputs.js';
import { readPages, untilStopped, type WantedInput } from './read-documents.js';
import { lanesOf, type RunSettings, settingsOfRun, settingsToJson } from './run-settings.js';
import { answererOf, answererSoFar } from './share-answers.js';

export interface ImportDocumentsOptions {
  readonly store: Store;
  /** The run that goes on; else the one to be made. */
  readonly run: RunRecord | Omit<NewRun, 'settings'>;
  /** As the user asks now. */
  readonly settings: RunSettings;
  readonly input: WantedInput;
  readonly rules: ImportRules;
  readonly stop: StopRequests;
  readonly tell: TellEvent;
}

export interface ImportRules {
  /**
   * What becomes of documents that changed after they were answered; asked where there are any.
   * @throws refusal CHANGED_ANSWERED where nobody says
   */
  readonly onChanged: (refusal: LlmBatchError) => Promise<'rerun' | 'keep'>;
  readonly skipBadLines: boolean;
  /** Where bad lines that are skipped are set aside. */
  readonly rejectsPath: string;
  /** A rejects file may be replaced whoever wrote it. */
  readonly force: boolean;
}

/** More than anybody reads before mending the cause. */
const MOST_BAD_LINES_TOLD = 20;

/**
 * @returns the run, ready to be drained; `interrupted` when the user stopped the import
 * @throws LlmBatchError (exit 2) for bad lines, an unreadable or empty input, or answers that would be paid for again
 */
export async function importDocuments(options: ImportDocumentsOptions): Promise<RunRecord | 'interrupted'> {
  const { input, run, tell } = options;
  const bad = { count: 0, first: [] as BadLine[] };
  try {
    tell({ type: 'import_started' });
    return await untilStopped(input, options.stop, (signal) => new Import(options, signal, bad).perform());
  } catch (error) {
    if (!(error instanceof ImportInterrupted)) throw error;
    tell({ type: 'import_interrupted', input: run.inputPath });
    return 'interrupted';
  } finally {
    tell({ type: 'import_ended' });
    if (bad.count > 0) {
      const first = bad.first.map(({ line, reason, place }) => ({
        line,
        reason,
        ...(place === undefined ? {} : { place }),
      }));
      tell({ type: 'bad_lines', input: run.inputPath, count: bad.count, first });
    }
  }
}

class Import {
  readonly #options: ImportDocumentsOptions;
  readonly #signal: AbortSignal;
  readonly #bad: { count: number; first: BadLine[] };
  readonly #existing: RunRecord | null;
  readonly #rejects: RejectsWriter;
  #run: RunRecord | null;
  /** What the pages of an input showed on their way by. */
  #first: FirstDocument | null = null;
  #remarks = new Map<RemarkKind, { count: number; readonly first: Remark }>();
  #description: InputDescription | null = null;

  constructor(
    options: ImportDocumentsOptions,
    signal: AbortSignal,
    bad: { count: number; first: BadLine[] },
  ) {
    const { rules, run, store } = options;
    this.#options = options;
    this.#signal = signal;
    this.#bad = bad;
    this.#existing = 'id' in run ? run : null;
    this.#run = this.#existing;
    this.#rejects = new RejectsWriter(rules.rejectsPath, {
      mayReplace: rules.force || (this.#existing?.writtenFiles ?? []),
      onComplete: async (file) => {
        if (this.#run !== null) await noteWrittenFile(store, this.#run.id, file);
      },
    });
  }

  async perform(): Promise<RunRecord> {
    const { run } = this.#options;
    try {
      const imported = 'id' in run ? await this.#bringInLine(run) : await this.#importNew(run);
      this.#tellWhatIsSent();
      return imported;
    } catch (error) {
      await this.#rejects.abort();
      throw error;
    }
  }

  async #importNew(newRun: Omit<NewRun, 'settings'>): Promise<RunRecord> {
    const { store, settings, tell } = this.#options;
    const run = await store.createRun({ ...newRun, settings: settingsToJson(settings, store) });
    this.#run = run;
    const report = await importNew(this.#importOptions(run));
    await this.#endReading();
    tell({ type: 'imported', run: run.name, ...report });
    return { ...this.#run, status: 'open' };
  }

  async #bringInLine(existing: RunRecord): Promise<RunRecord> {
    const { store, settings, rules, tell } = this.#options;
    const importOptions = this.#importOptions(existing);
    const answerers = { soFar: await answererSoFar(store, existing), fromNowOn: answererOf(settings) };
    const plan = await planImport(importOptions, answerers);
    await this.#endReading();
    tell({ type: 'planned', run: existing.name, ...plan });
    const changed =
      plan.changedFinished === 0
        ? 'rerun'
        : await rules.onChanged(changedAnswers(existing, plan.changedFinished, settings));
    const now = { ...settings, ...(this.#description && { input: this.#description }) };
    const reimport = { keepFinished: changed === 'keep', answerers };
    return await applyImport(importOptions, reimport, settingsToJson(now, store));
  }

  #importOptions(run: RunRecord): ImportOptions {
    const { store, rules } = this.#options;
    return {
      store,
      run,
      readPages: () => this.#pages(),
      skipBadLines: rules.skipBadLines,
      signal: this.#signal,
      onBadLines: async (bad) => {
        this.#bad.count += bad.length;
        this.#bad.first.push(...bad.slice(0, MOST_BAD_LINES_TOLD - this.#bad.first.length));
        if (rules.skipBadLines) for (const each of bad) await this.#rejects.write(each);
      },
    };
  }

  async *#pages(): AsyncGenerator<DocumentPage> {
    const { input, settings, tell } = this.#options;
    const { request } = settings;
    this.#remarks.clear();
    const onOpened = (description: InputDescription): Promise<void> => this.#describe(description);
    for await (const page of readPages(input, { request, signal: this.#signal, tell, onOpened })) {
      this.#first ??= page.first;
      for (const remark of page.remarks) {
        const seen = this.#remarks.get(remark.kind) ?? { count: 0, first: remark };
        this.#remarks.set(remark.kind, { ...seen, count: seen.count + 1 });
      }
      yield page;
    }
  }

  /** Before the first task: whatever happens then, what is imported can be written again in the input's shape. */
  async #describe(description: InputDescription): Promise<void> {
    const { store, settings } = this.#options;
    this.#description = description;
    if (this.#existing !== null || this.#run === null) return;
    const described = settingsToJson({ ...settings, input: description }, store);
    this.#run = await store.updateRun(this.#run.id, { settings: described });
  }

  async #endReading(): Promise<void> {
    const { tell } = this.#options;
    tell({ type: 'import_ended' });
    const path = await this.#rejects.finish();
    if (path !== null) tell({ type: 'rejects_written', path });
  }

  /** Before the first call: what is sent, to which model, and what the user may not have expected. */
  #tellWhatIsSent(): void {
    const { settings, tell } = this.#options;
    if (this.#first === null) return;
    const { form, model, promptField } = this.#first;
    const message =
      form !== 'record'
        ? 'the requests as they are'
        : promptField === null
          ? 'the rendered prompt'
          : `the field '${promptField}'`;
    const hosts = new Set(lanesOf(settings).map((lane) => new URL(lane.baseUrl).host));
    const endpoint = settings.simulator === null ? [...hosts].join(', ') : 'the simulator';
    tell({ type: 'sending', message, model, endpoint });
    for (const { count, first } of this.#remarks.values()) tell({ type: 'remark', count, ...first });
  }
}

function changedAnswers(run: RunRecord, count: number, settings: RunSettings): LlmBatchError {
  return usageError(
    'CHANGED_ANSWERED',
    `${count} ${count === 1 ? 'document' : 'documents'} of run '${run.name}' would now be sent differently than when answered (changed: ${whatChanged(settingsOfRun(run), settings)}); nothing was called or changed.`,
    { run: run.name, simulated: run.simulated },
  );
}

/** Words for what makes requests other ones. */
function whatChanged(before: RunSettings, now: RunSettings): string {
  const parts = [
    ['the prompt', before.request.promptTemplate, now.request.promptTemplate],
    ['the system message', before.request.systemTemplate, now.request.systemTemplate],
    ['the model', before.request.model, now.request.model],
    ['the endpoint', before.request.endpoint, now.request.endpoint],
    ['the parameters', before.request.parameters, now.request.parameters],
    ['the form of answers', before.answers.check, now.answers.check],
  ] as const;
  const changed = parts.filter(
    ([, one, other]) => JSON.stringify(one ?? null) !== JSON.stringify(other ?? null),
  );
  return changed.length === 0 ? 'the documents' : changed.map(([words]) => words).join(', ');
}
