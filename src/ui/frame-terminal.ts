/**
 * The terminal under cli-progress: takes the pieces of one drawing and sends them as one write, so that nothing
 * flickers, and keeps account of the rows the last frame takes, so that frames of several lines can be drawn over.
 */
import type { Writable } from 'node:stream';
import { draw } from '../core/terminal-gate.js';
import type { OutputTerminal } from './colours.js';
import { displayWidth, withoutColour } from './width.js';

export type TerminalStream = Writable & OutputTerminal;

const HIDE_CURSOR = '\x1b[?25l';
const SHOW_CURSOR = '\x1b[?25h';
/** Wrapping is off only inside one write: a process that is killed leaves the shell as it was. */
const WRAP_OFF = '\x1b[?7l';
const WRAP_ON = '\x1b[?7h';
const CLEAR_TO_END_OF_LINE = '\x1b[K';
const CLEAR_BELOW = '\x1b[J';

const USUAL_COLUMNS = 80;

/** The interface that cli-progress expects of its `terminal` option. */
export class FrameTerminal {
  readonly #stream: TerminalStream;
  #lines: readonly string[] = [];
  /** The frame that is on the screen as it was drawn; null when it may be something else. */
  #intact: string | null = null;

  constructor(stream: TerminalStream) {
    this.#stream = stream;
  }

  /** One column stays free: a character in the last one leaves some terminals about to wrap. */
  getWidth(): number {
    return Math.max(1, (this.#stream.columns || USUAL_COLUMNS) - 1);
  }

  isTTY(): boolean {
    return true;
  }

  /** Draws a frame, lines separated by `\n`, over the last one, unless that very frame stands there already. */
  write(frame: string): void {
    if (frame === this.#intact) return;
    const lines = frame.split('\n');
    draw(this.#stream, (safe) => {
      const drawn = lines.map((line) => safe(line) + CLEAR_TO_END_OF_LINE).join('\r\n');
      return `${this.#toTop()}${WRAP_OFF}${drawn}${CLEAR_BELOW}${WRAP_ON}`;
    });
    this.#lines = lines;
    this.#intact = frame;
  }

  /** Prints text above the frame, which must be drawn again after it. */
  printAbove(text: string): void {
    draw(this.#stream, (safe) => `${this.#toTop()}${CLEAR_BELOW}${safe(text)}\n`);
    this.forget();
  }

  /** Something else is going to move the cursor: the next frame starts where it stands then. */
  forget(): void {
    this.#lines = [];
    this.#intact = null;
  }

  /** The frame on the screen was disturbed (a resize): the next one is drawn over it, changed or not. */
  invalidate(): void {
    this.#intact = null;
  }

  cursor(shown: boolean): void {
    draw(this.#stream, () => (shown ? SHOW_CURSOR : HIDE_CURSOR));
  }

  /** After the last frame. */
  newline(): void {
    this.#stream.write('\n');
    this.forget();
  }

  #toTop(): string {
    // A terminal that was made narrower has broken the lines of the last frame into more rows.
    const columns = this.#stream.columns || USUAL_COLUMNS;
    let rows = 0;
    for (const line of this.#lines)
      rows += Math.max(1, Math.ceil(displayWidth(withoutColour(line)) / columns));
    return rows > 1 ? `\r\x1b[${rows - 1}A` : '\r';
  }

  // A frame is one write: what cli-progress asks for piece by piece has no work left to do.
  cursorTo(): void {}
  clearRight(): void {}
  cursorSave(): void {}
  cursorRestore(): void {}
  lineWrapping(): void {}
}
