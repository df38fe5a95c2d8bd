/** How wide text is in a terminal, which is neither its length in UTF-16 nor in code points. */

/** One column each: ASCII, Latin letters, dashes and quotes, and what bars and tables are drawn with. */
const PLAIN = /^[\x20-\x7e\xa1-\xac\xae-\u02ff\u2010-\u2027\u2500-\u259f]*$/;
const ZERO_WIDTH = /^[\p{Mark}\p{Cf}]+$/u;
const EMOJI = /\p{Emoji_Presentation}|\p{Emoji}\uFE0F|\p{Regional_Indicator}{2}/u;

/** East Asian Wide and Fullwidth (Unicode Standard Annex 11), as first and last code points, emoji apart. */
const WIDE_RANGES: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2329, 0x232a],
  [0x2e80, 0x303e],
  [0x3041, 0xa4cf],
  [0xa960, 0xa97c],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6b],
  [0xff01, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x18cff],
  [0x1aff0, 0x1b2fb],
  [0x1d300, 0x1d376],
  [0x1f200, 0x1f265],
  [0x20000, 0x3fffd],
];

let segmenter: Intl.Segmenter | null = null;

/** Made when it is needed: it takes longer to make than most commands take. */
function graphemesOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return segmenter.segment(text);
}

/** Columns of text without control characters; ambiguous characters (UAX 11) count as narrow. */
export function displayWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemesOf(text)) width += graphemeWidth(segment);
  return width;
}

function graphemeWidth(grapheme: string): number {
  if (ZERO_WIDTH.test(grapheme)) return 0;
  if (EMOJI.test(grapheme)) return 2;
  // A cluster is drawn on its widest part: some begin with a narrow sign that the next character absorbs.
  let width = 1;
  for (const character of grapheme) if (isWide(character.codePointAt(0) ?? 0)) width = 2;
  return width;
}

function isWide(codePoint: number): boolean {
  if (codePoint < 0x1100) return false;
  for (const [first, last] of WIDE_RANGES) {
    if (codePoint < first) return false;
    if (codePoint <= last) return true;
  }
  return false;
}

/** Cuts text to at most `columns`, its last one an ellipsis where something was cut off. */
export function truncateToWidth(text: string, columns: number): string {
  if (columns <= 0) return '';
  if (text.length <= columns && PLAIN.test(text)) return text;
  if (displayWidth(text) <= columns) return text;
  let kept = '';
  let width = 0;
  for (const { segment } of graphemesOf(text)) {
    const next = graphemeWidth(segment);
    if (width + next > columns - 1) break;
    kept += segment;
    width += next;
  }
  return `${kept}…`;
}

export function padToWidth(text: string, columns: number, side: 'start' | 'end' = 'end'): string {
  const padding = ' '.repeat(Math.max(0, columns - displayWidth(text)));
  return side === 'end' ? text + padding : padding + text;
}

/** Stands for a blank that is none to break at. */
const HELD = '\0';

/**
 * Breaks text at spaces into lines of at most `columns`. A word that is wider (a path, a URL) gets a line of
 * its own and is left whole, so that it can still be copied; so is a command between backticks. Colours have no width.
 */
export function wrapToWidth(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = '';
  let width = 0;
  const held = text.replace(/`[^`]*`/g, (command) => command.replaceAll(' ', HELD));
  for (const word of held.split(' ').map((each) => each.replaceAll(HELD, ' '))) {
    const wordWidth = displayWidth(withoutColour(word));
    if (line !== '' && width + 1 + wordWidth > columns) {
      lines.push(line);
      line = word;
      width = wordWidth;
    } else {
      line = line === '' ? word : `${line} ${word}`;
      width = width === 0 ? wordWidth : width + 1 + wordWidth;
    }
  }
  lines.push(line);
  return lines;
}

/** Text behind a label, broken at spaces; its further lines begin at the indent, which is the label's width or less. */
export function hanging(label: string, text: string, indent: number, columns: number): string[] {
  return wrapToWidth(text, Math.max(20, columns)).map(
    (part, row) => (row === 0 ? label : ' '.repeat(indent)) + part,
  );
}

export function withoutColour(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colour is made of control characters
  return text.replace(/\x1b\[[0-9;]*m/g, '');
}
