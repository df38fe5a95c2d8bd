/**
 * The progress of a run on standard error: a bar that is drawn ten times a second on a terminal, a plain line every
 * ten seconds anywhere else, nothing under `--quiet`. It asks for a snapshot whenever it draws; nobody pushes.
 */
import { SingleBar } from 'cli-progress';
import type { Clock } from '../core/clock.js';
import type { ProgressSnapshot } from '../core/progress-snapshot.js';
import { type Appearance, inCharacterSet, isInteractive } from './colours.js';
import { FrameTerminal, type TerminalStream } from './frame-terminal.js';
import { renderFrame } from './progress-frame.js';
import { renderPlainLine } from './progress-plain.js';

export interface ProgressOptions {
  readonly stream: TerminalStream;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly appearance: Appearance;
  readonly clock: Clock;
  readonly quiet: boolean;
  /** Cheap: called at every drawing. */
  readonly snapshot: () => ProgressSnapshot;
}

export interface Progress {
  /** Draws at once and from then on by itself, until `stop`. */
  start(): void;
  /** Prints a line (a warning, a notice) without harm to the bar. Nothing under `--quiet`. */
  log(line: string): void;
  /** Draws the last state, gives the cursor back and leaves the last line standing. Harmless when called twice. */
  stop(): void;
}

const REDRAW_EVERY_MS = 100;
const PLAIN_LINE_EVERY_MS = 10_000;

/** Picks the display that fits the stream. A stream that cannot be written any more never harms the run. */
export function createProgress(options: ProgressOptions): Progress {
  if (options.quiet) return SILENT;
  options.stream.on('error', () => undefined);
  return isInteractive(options.stream, options.environment)
    ? new BarProgress(options)
    : new PlainProgress(options);
}

const SILENT: Progress = { start: () => undefined, log: () => undefined, stop: () => undefined };

class PlainProgress implements Progress {
  readonly #options: ProgressOptions;
  #cancelTimer: (() => void) | null = null;
  #lastLine = '';

  constructor(options: ProgressOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#cancelTimer !== null) return;
    this.#print();
    this.#schedule();
  }

  #schedule(): void {
    this.#cancelTimer = this.#options.clock.after(PLAIN_LINE_EVERY_MS, () => {
      this.#print();
      this.#schedule();
    });
  }

  #print(): void {
    this.#lastLine = this.#line();
    this.log(this.#lastLine);
  }

  #line(): string {
    const { appearance, snapshot } = this.#options;
    return inCharacterSet(renderPlainLine(snapshot(), appearance.colours), appearance);
  }

  log(line: string): void {
    this.#options.stream.write(`${line}\n`);
  }

  stop(): void {
    if (this.#cancelTimer === null) return;
    this.#cancelTimer();
    this.#cancelTimer = null;
    const line = this.#line();
    if (line !== this.#lastLine) this.log(line);
  }
}

/**
 * cli-progress would draw on a timer of its own; ours decides instead, so that tests can hold the clock. The longest
 * period that Node's timers can keep puts its own out of the way.
 */
const NEVER_BY_ITSELF_FPS = 1_000 / 2_000_000_000;

class BarProgress implements Progress {
  readonly #options: ProgressOptions;
  readonly #terminal: FrameTerminal;
  readonly #bar: SingleBar;
  #cancelTimer: (() => void) | null = null;
  #startedAtMs = 0;
  #ended = false;

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#terminal = new FrameTerminal(options.stream);
    const barOptions = {
      stream: options.stream,
      // Known to cli-progress, though not to its published types.
      terminal: this.#terminal,
      format: () => this.#frame(),
      fps: NEVER_BY_ITSELF_FPS,
      // Whether a frame has changed is the terminal's to know: what is on the screen may be gone though it has not.
      forceRedraw: true,
      synchronousUpdate: false,
      hideCursor: true,
    };
    this.#bar = new SingleBar(barOptions);
  }

  #frame(): string {
    return renderFrame(this.#options.snapshot(), {
      columns: this.#terminal.getWidth(),
      appearance: this.#options.appearance,
      elapsedMs: this.#options.clock.monotonicMs() - this.#startedAtMs,
      ended: this.#ended,
    }).join('\n');
  }

  start(): void {
    if (this.#cancelTimer !== null) return;
    this.#ended = false;
    this.#startedAtMs = this.#options.clock.monotonicMs();
    this.#options.stream.on('resize', this.#redraw);
    process.on('SIGTSTP', this.#suspend);
    process.on('SIGCONT', this.#resume);
    process.on('exit', this.#showCursor);
    this.#bar.start(this.#options.snapshot().total, 0);
    this.#schedule();
  }

  #schedule(): void {
    this.#cancelTimer = this.#options.clock.after(REDRAW_EVERY_MS, () => {
      // A terminal that is slow to read (a remote one) gets fewer frames, not a queue of old ones.
      if (!this.#options.stream.writableNeedDrain) this.#bar.render();
      this.#schedule();
    });
  }

  readonly #redraw = (): void => {
    this.#terminal.invalidate();
    this.#bar.render();
  };

  /** Ctrl-Z: a handler takes the place of stopping, so stop after giving the cursor back to the shell. */
  readonly #suspend = (): void => {
    this.#terminal.cursor(true);
    // The shell writes below the bar: after `fg` it starts anew where the cursor stands then.
    this.#terminal.forget();
    process.kill(process.pid, 'SIGSTOP');
  };

  readonly #resume = (): void => {
    this.#terminal.cursor(false);
    this.#redraw();
  };

  readonly #showCursor = (): void => {
    this.#terminal.cursor(true);
  };

  log(line: string): void {
    if (this.#cancelTimer === null) {
      this.#options.stream.write(`${line}\n`);
      return;
    }
    this.#terminal.printAbove(line);
    this.#bar.render();
  }

  stop(): void {
    if (this.#cancelTimer === null) return;
    this.#cancelTimer();
    this.#cancelTimer = null;
    this.#ended = true;
    this.#options.stream.off('resize', this.#redraw);
    process.off('SIGTSTP', this.#suspend);
    process.off('SIGCONT', this.#resume);
    process.off('exit', this.#showCursor);
    this.#bar.stop();
  }
}
