/** What `run` and `resume` show on standard error, from the first line read to the summary: a subscriber of events. */
import type { RunEvent } from '../core/event.js';
import { EMPTY_SNAPSHOT, type ProgressSnapshot } from '../core/progress-snapshot.js';
import { renderBadLines } from './bad-lines.js';
import { eventLines } from './event-lines.js';
import { noticeLines } from './notice.js';
import { formatCount } from './numbers.js';
import { createProgress, type Progress, type ProgressOptions } from './progress.js';
import { shownPath } from './run-words.js';
import { openOf, totalOf } from './summary-facts.js';
import { renderSummary } from './summary-page.js';
import { renderTry } from './try-page.js';
import { wrapToWidth } from './width.js';

export interface DisplayOptions extends Omit<ProgressOptions, 'snapshot'> {
  /** A line for every failed call. */
  readonly verbose: boolean;
  /** Paths inside it are shown as they are named there. */
  readonly workingFolder: string;
  /** Reading that is done sooner needs no bar. */
  readonly readingShownAfterMs: number;
}

/** What is told under `--quiet` too: why a run did not begin, or stopped, or lost its store. */
const ERRORS: ReadonlySet<RunEvent['type']> = new Set([
  'bad_lines',
  'halted',
  'limit_reached',
  'store_trouble',
  'salvaged',
]);

export class Display {
  readonly #options: DisplayOptions;
  readonly #progress: Progress;
  #snapshot: () => ProgressSnapshot = () => EMPTY_SNAPSHOT;
  #importing: ProgressSnapshot = { ...EMPTY_SNAPSHOT, phase: 'importing' };
  #cancelStart: () => void = () => undefined;
  #rejectsPath: string | null = null;
  #run = '';

  constructor(options: DisplayOptions) {
    this.#options = options;
    this.#progress = createProgress({ ...options, snapshot: () => this.#snapshot() });
  }

  /** Takes an event of the run. */
  readonly tell = (event: RunEvent): void => {
    switch (event.type) {
      case 'import_started':
        this.#startImport();
        return;
      case 'input_opened':
        this.#importing = { ...this.#importing, importTotalBytes: event.totalBytes };
        return;
      case 'importing': {
        const { documents, bytesRead } = event;
        const read = { importedDocuments: documents, importedBytes: bytesRead, total: documents };
        this.#importing = { ...this.#importing, ...read };
        return;
      }
      case 'started':
        this.#snapshot = event.progress;
        this.#run = event.run;
        this.#progress.start();
        return;
      case 'import_ended':
      case 'calls_ended':
        this.#endProgress();
        return;
      case 'rejects_written':
        this.#rejectsPath = event.path;
        return;
      case 'call_failed':
        if (!this.#options.verbose) return;
        break;
      // As often as documents come, and counted by the bar.
      case 'call_started':
      case 'call_ended':
      case 'waited':
      case 'tasks_settled':
      case 'groups_sized':
      case 'group_split':
        return;
    }
    for (const line of this.#linesOf(event)) {
      if (!this.#options.quiet) this.#progress.log(line);
      else if (ERRORS.has(event.type)) this.#options.stream.write(`${line}\n`);
    }
  };

  #linesOf(event: RunEvent): string[] {
    const { appearance } = this.#options;
    switch (event.type) {
      case 'bad_lines': {
        const name = this.#shownPath(event.input);
        return renderBadLines(event.first, event.count, name, appearance);
      }
      case 'tried':
        return renderTry(event, appearance);
      case 'ended':
        return this.#summaryOf(event);
      default:
        return eventLines(event, appearance, this.#run).flatMap((line) =>
          noticeLines(line, this.#options.stream),
        );
    }
  }

  #startImport(): void {
    this.#snapshot = () => this.#importing;
    const { clock, readingShownAfterMs } = this.#options;
    if (readingShownAfterMs === 0) this.#progress.start();
    else this.#cancelStart = clock.after(readingShownAfterMs, () => this.#progress.start());
  }

  /** The bar that is drawn, if there is one, stands as it is. */
  #endProgress(): void {
    this.#cancelStart();
    this.#progress.stop();
  }

  #summaryOf(end: RunEvent & { readonly type: 'ended' }): string[] {
    const { run, summary, elapsedMs, prices, files, readerGone } = end;
    const { haltReason, simulated } = run;
    const { appearance } = this.#options;
    const shown = (path: string | null): string | null => (path === null ? null : this.#shownPath(path));
    const report = {
      ...{ runName: run.name, summary, elapsedMs, prices, haltReason, simulated },
      callsMade: summary.calls.made - end.before.calls.made,
      isTry: end.end.reason === 'tried',
      files: {
        results: shown(files.resultsPath),
        errors: shown(files.errorsPath),
        rejects: shown(this.#rejectsPath),
      },
    };
    const { completed, failed } = end.before.counts;
    const isOld = report.callsMade === 0 && totalOf(end.before) > 0 && openOf(end.before) === 0;
    const gone = 'The reader of standard output has gone; the run was stopped.';
    return [
      ...(isOld ? wrapToWidth(nothingToSend(completed, failed), appearance.columns) : []),
      ...(readerGone ? [appearance.colours.yellow(gone)] : []),
      ...renderSummary(report, appearance),
    ];
  }

  #shownPath(path: string): string {
    return shownPath(path, this.#options.workingFolder);
  }
}

/** Before the figures, which are those of the whole run. */
function nothingToSend(completed: number, failed: number): string {
  if (failed === 0) return `Nothing to send: all ${formatCount(completed)} were answered earlier.`;
  return `Nothing to send: ${formatCount(completed)} were answered earlier, ${formatCount(failed)} failed.`;
}
