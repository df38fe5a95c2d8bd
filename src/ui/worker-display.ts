/**
 * What a worker shows on standard error: a line for each run that it begins and ends with, what happens to it in
 * between, and on a terminal one line below them that says how much is open.
 */
import type { DrainEnding, RunEvent } from '../core/event.js';
import { printable } from '../core/foreign-text.js';
import type { ProgressSnapshot } from '../core/progress-snapshot.js';
import { inCharacterSet, isInteractive } from './colours.js';
import type { DisplayOptions } from './display.js';
import { eventLines } from './event-lines.js';
import { FrameTerminal } from './frame-terminal.js';
import { haltReasonText } from './halt-reason.js';
import { noticeLines } from './notice.js';
import { formatCount, formatQuantity } from './numbers.js';
import { openOf } from './summary-facts.js';

export type WorkerDisplayOptions = Omit<DisplayOptions, 'workingFolder' | 'readingShownAfterMs'>;

const REDRAW_EVERY_MS = 1_000;

export class WorkerDisplay {
  readonly #options: WorkerDisplayOptions;
  readonly #terminal: FrameTerminal | null;
  readonly #progress = new Map<string, () => ProgressSnapshot>();
  #answered = 0;
  #failed = 0;
  #cancelTimer: () => void = () => undefined;

  constructor(options: WorkerDisplayOptions) {
    this.#options = options;
    const { stream, environment, quiet } = options;
    stream.on('error', () => undefined);
    this.#terminal = isInteractive(stream, environment) && !quiet ? new FrameTerminal(stream) : null;
    this.#draw();
  }

  readonly tell = (event: RunEvent, run: string | null): void => {
    if (event.type === 'started') this.#progress.set(event.run, event.progress);
    if (event.type === 'calls_ended' && run !== null) this.#progress.delete(run);
    if (event.type === 'tasks_settled') {
      this.#answered += event.completed.length;
      this.#failed += event.failed.length;
    }
    if (event.type === 'call_failed' && !this.#options.verbose) return;
    for (const line of this.#linesOf(event, run ?? '')) {
      this.#print(run === null || line.startsWith(' ') ? line : `${printable(run)}: ${line}`);
    }
  };

  /** Tells what is of no run. */
  say(sentence: string): void {
    this.#print(sentence);
  }

  /** Leaves the last line standing. */
  close(): void {
    this.#cancelTimer();
    if (this.#terminal === null) return;
    this.#terminal.write(this.#status());
    this.#options.stream.write('\n');
  }

  #linesOf(event: RunEvent, runName: string): string[] {
    if (event.type === 'started') {
      const { total, completed, failed } = event.progress();
      return [`${formatQuantity(total - completed - failed, 'document')} to send`];
    }
    if (event.type !== 'ended') return eventLines(event, this.#options.appearance, runName);
    const { summary, end, run } = event;
    const { completed, failed } = summary.counts;
    const left = openOf(summary);
    return [
      [
        endWord(end, left),
        `${formatCount(completed)} answered`,
        ...(failed > 0 ? [`${formatCount(failed)} failed`] : []),
        ...(left > 0 ? [`${formatCount(left)} left`] : []),
        ...(run.haltReason === null ? [] : [haltReasonText(run.haltReason)]),
      ].join(' · '),
    ];
  }

  #print(line: string): void {
    const { stream, appearance, quiet } = this.#options;
    if (quiet) return;
    const shown = inCharacterSet(noticeLines(line, stream).join('\n'), appearance);
    if (this.#terminal === null) stream.write(`${shown}\n`);
    else {
      this.#terminal.printAbove(shown);
      this.#terminal.write(this.#status());
    }
  }

  #draw(): void {
    if (this.#terminal === null) return;
    this.#terminal.write(this.#status());
    this.#cancelTimer = this.#options.clock.after(REDRAW_EVERY_MS, () => this.#draw());
  }

  #status(): string {
    const open = [...this.#progress.values()].reduce((sum, progress) => sum + progress().openCalls, 0);
    const runs = this.#progress.size;
    const parts = [
      runs === 0 ? 'waiting for work' : formatQuantity(runs, 'run'),
      ...(runs === 0 ? [] : [formatQuantity(open, 'open call')]),
      `${formatCount(this.#answered)} answered`,
      ...(this.#failed > 0 ? [`${formatCount(this.#failed)} failed`] : []),
    ];
    return inCharacterSet(parts.join(' · '), this.#options.appearance);
  }
}

function endWord({ reason }: DrainEnding, left: number): string {
  if (left === 0) return 'finished';
  return reason === 'halted' || reason === 'limit_reached' ? 'stopped' : 'left';
}
