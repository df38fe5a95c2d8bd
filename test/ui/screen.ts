/** A stream that is a terminal, and what a person would see on it. */
import { Writable } from 'node:stream';
import { displayWidth } from '../../src/ui/width.js';

// biome-ignore-start lint/suspicious/noControlCharactersInRegex: a terminal is steered with control characters
const TOKEN = /\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+/g;
const MOVE_UP = /^\x1b\[\d+A$/;
const COLOUR = /^\x1b\[[0-9;]*m$/;
// biome-ignore-end lint/suspicious/noControlCharactersInRegex: see above

/** Understands what a progress display may send: line ends, moving up, clearing, cursor and wrap modes, colours. */
export class Screen extends Writable {
  readonly isTTY = true;
  columns: number;
  /** One entry a row; what scrolled by is still in it. */
  rows: string[] = [''];
  cursorShown = true;
  wrapping = true;
  /** Rows that a terminal would have broken or cut, because they were wider than it. */
  readonly tooWide: string[] = [];
  /** One entry a call of `write`. */
  readonly writes: string[] = [];
  #row = 0;
  #column = 0;

  constructor(columns: number) {
    super({ decodeStrings: false });
    this.columns = columns;
  }

  /** The rows without trailing blanks and empty rows at the end. */
  get text(): string {
    return this.rows
      .map((row) => row.trimEnd())
      .join('\n')
      .trimEnd();
  }

  resizeTo(columns: number): void {
    this.columns = columns;
    this.emit('resize');
  }

  override _write(chunk: string, _encoding: string, done: () => void): void {
    this.writes.push(chunk);
    for (const [token] of chunk.matchAll(TOKEN)) this.#take(token);
    done();
  }

  #take(token: string): void {
    const row = this.rows[this.#row] ?? '';
    if (token === '\r') this.#column = 0;
    else if (token === '\n') this.#lineFeed();
    else if (token === '\x1b[K') this.rows[this.#row] = row.slice(0, this.#column);
    else if (token === '\x1b[J') {
      this.rows = [...this.rows.slice(0, this.#row), row.slice(0, this.#column)];
    } else if (MOVE_UP.test(token)) this.#row = Math.max(0, this.#row - Number.parseInt(token.slice(2), 10));
    else if (token === '\x1b[?25l') this.cursorShown = false;
    else if (token === '\x1b[?25h') this.cursorShown = true;
    else if (token === '\x1b[?7l') this.wrapping = false;
    else if (token === '\x1b[?7h') this.wrapping = true;
    else if (COLOUR.test(token)) return;
    else if (token.startsWith('\x1b')) throw new Error(`this screen does not know ${JSON.stringify(token)}`);
    else this.#print(row, token);
  }

  #lineFeed(): void {
    // As a terminal in its usual mode does: a line feed goes to the first column too.
    this.#row += 1;
    this.#column = 0;
    while (this.rows.length <= this.#row) this.rows.push('');
  }

  #print(row: string, text: string): void {
    const printed = row.slice(0, this.#column) + text + row.slice(this.#column + text.length);
    this.rows[this.#row] = printed;
    this.#column += text.length;
    if (displayWidth(printed) > this.columns) this.tooWide.push(printed);
  }
}

/** A stream that is no terminal: a file, a pipe. */
export class Log extends Writable {
  readonly isTTY = false;
  text = '';

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk;
    done();
  }

  get lines(): string[] {
    return this.text.split('\n').slice(0, -1);
  }
}
