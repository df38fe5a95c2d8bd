/** How text on one stream looks: its width, its colours, its character set. */
import { Chalk, type ChalkInstance } from 'chalk';
import { wrapToWidth } from './width.js';

/** The parts of a stream that decide how text on it may look. */
export interface OutputTerminal {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** Of a log and a pipe, which have no width. */
const USUAL_COLUMNS = 100;

type Environment = Readonly<Record<string, string | undefined>>;

export interface Appearance {
  /** That a line may take. */
  readonly columns: number;
  /** Draws nothing but the sixteen colours of the user's own palette, or no colour at all. */
  readonly colours: ChalkInstance;
  /** Lines and dots outside ASCII may be used. */
  readonly unicode: boolean;
  /** Makes the commands in a sentence those that this user types. */
  readonly command: (sentence: string) => string;
}

/**
 * How text on this stream may look. Colour: `--no-color` before `FORCE_COLOR` before `NO_COLOR` (no-color.org) before
 * the stream itself, as Node orders them; a dumb terminal gets none.
 * @param colourFlag false when `--no-color` was given
 */
export function appearanceOf(
  stream: OutputTerminal,
  environment: Environment,
  colourFlag: boolean,
  command: Appearance['command'] = asItIs,
): Appearance {
  return {
    // As wide as the terminal is by then.
    get columns() {
      return columnsOf(stream);
    },
    colours: new Chalk({ level: wantsColour(stream, environment, colourFlag) ? 1 : 0 }),
    unicode: speaksUnicode(environment),
    command,
  };
}

/** That a line on this stream may take. */
export function columnsOf({ columns }: OutputTerminal): number {
  return columns || USUAL_COLUMNS;
}

/** No colour, Unicode: for text that goes to a file or a test. */
export const PLAIN_APPEARANCE: Appearance = {
  columns: USUAL_COLUMNS,
  colours: new Chalk({ level: 0 }),
  unicode: true,
  command: asItIs,
};

function asItIs(sentence: string): string {
  return sentence;
}

function wantsColour(stream: OutputTerminal, environment: Environment, colourFlag: boolean): boolean {
  if (!colourFlag) return false;
  const forced = environment['FORCE_COLOR'];
  if (forced !== undefined) return forced !== '0' && forced !== 'false';
  if ((environment['NO_COLOR'] ?? '') !== '') return false;
  return isInteractive(stream, environment);
}

/** A terminal that can move its cursor: the place for a bar that is drawn over and over. */
export function isInteractive(stream: OutputTerminal, environment: Environment): boolean {
  return stream.isTTY === true && environment['TERM'] !== 'dumb';
}

/** A locale that names another character set decides; where none is named (containers), UTF-8 is what terminals speak. */
function speaksUnicode(environment: Environment): boolean {
  if (environment['TERM'] === 'linux') return false;
  const locale = environment['LC_ALL'] || environment['LC_CTYPE'] || environment['LANG'];
  return locale === undefined || locale === '' || /utf-?8/i.test(locale);
}

const ASCII: Readonly<Record<string, string>> = {
  '━': '#',
  '╸': '#',
  '─': '-',
  '·': '|',
  '…': '~',
  '–': '-',
  '✓': '+',
  '✗': 'x',
  '■': '!',
};

/** Replaces the signs that this program draws with ASCII ones of the same width, where the stream needs that. */
export function inCharacterSet(text: string, appearance: Appearance): string {
  return appearance.unicode ? text : text.replace(/[━╸─·…–✓✗■]/g, (sign) => ASCII[sign] ?? sign);
}

/** Text broken at spaces into lines that are painted each by itself, none wider than the stream unless a word is. */
export function paragraph(
  text: string,
  appearance: Appearance,
  paint: (line: string) => string = asItIs,
): string[] {
  return wrapToWidth(text, appearance.columns).map((line) => paint(inCharacterSet(line, appearance)));
}
