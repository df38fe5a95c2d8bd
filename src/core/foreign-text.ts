/**
 * Text that came from outside (documents, answers, servers, file names, stores) on its way to a terminal. What steers a
 * terminal is taken out in this file alone: the C0 and C1 control characters, DEL, and the marks that reorder text
 * (Unicode Standard Annex 9), under which a line would read as what it is not.
 */

/** Tab and line feed stay: they only move on. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const STEERING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Foreign text, its line breaks kept, that cannot steer the terminal any more. */
export function disarmed(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(STEERING, '�');
}

/** Foreign text on one line: line breaks and tabs become spaces, everything else that steers a terminal `�`. */
export function printable(text: string): string {
  return text.replace(/[\t\n\r\u0085\u2028\u2029]+/g, ' ').replace(STEERING, '�');
}

/** Control characters and white space become single spaces, as do the marks that reorder text. */
const UNPRINTABLE = /[\s\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+/gu;

/** Foreign text for a message: one line of at most `maxLength` characters. */
export function shortLine(text: string, maxLength: number): string {
  const line = text.replace(UNPRINTABLE, ' ').trim();
  if (line.length <= maxLength) return line;
  // No half of a surrogate pair is left at the cut.
  return `${line.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** False for a text with nothing to answer: empty or white space only. */
export function hasText(text: string): boolean {
  return /\S/.test(text);
}

/** The same JSON, in which what steers a terminal is escaped. @param json well-formed, so these stand in strings alone */
export function escapedJson(json: string): string {
  return json.replace(STEERING, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** `JSON.stringify` for what is printed. */
export function printableJson(value: unknown): string {
  return escapedJson(JSON.stringify(value));
}

/** The colours that this program draws with: bold, dim, and the foregrounds of the user's own palette. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape is what is looked for
const OWN_COLOUR = /\u001b\[(?:0|1|2|22|3[1-6]|39)m/g;

/**
 * For all that is printed, whatever it was made of: the last gate before a terminal.
 * @param keepsColour the program's own colours pass; everything else never does
 */
export function gated(text: string, keepsColour: boolean): string {
  if (!keepsColour) return disarmed(text);
  let safe = '';
  let from = 0;
  for (const colour of text.matchAll(OWN_COLOUR)) {
    safe += disarmed(text.slice(from, colour.index)) + colour[0];
    from = colour.index + colour[0].length;
  }
  return safe + disarmed(text.slice(from));
}
