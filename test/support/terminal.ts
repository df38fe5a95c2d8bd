/** What a terminal would take for a command, looked for without the program's own patterns. */

const REORDERING = new Set([0x61c, 0x200e, 0x200f, 0x2028, 0x2029]);

/** Characters that steer a terminal, as `U+001B`; tabs, line feeds, and the colours that this program draws with, are none. */
export function steeringIn(text: string): string[] {
  const found: string[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const colour = code === 0x1b ? /^\[(?:[0-2]|22|3[1-6]|39)m/.exec(text.slice(at + 1, at + 5)) : null;
    const isControl = (code < 0x20 && code !== 0x09 && code !== 0x0a) || (code >= 0x7f && code <= 0x9f);
    const turns =
      REORDERING.has(code) || (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    if (colour === null && (isControl || turns)) {
      found.push(`U+${code.toString(16).toUpperCase().padStart(4, '0')}`);
    }
  }
  return found;
}
