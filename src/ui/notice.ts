/** Sentences for people on standard error: broken at words on a terminal, whole in a log and a pipe, which have no width. */
import type { TerminalStream } from './frame-terminal.js';
import { wrapToWidth } from './width.js';

/** What is indented (an example, a command) is there to be copied, and stays whole. */
export function noticeLines(text: string, { isTTY, columns = 0 }: TerminalStream): string[] {
  const lines = text.split('\n');
  if (isTTY !== true || columns === 0) return lines;
  return lines.flatMap((line) => (line.startsWith(' ') ? [line] : wrapToWidth(line, columns)));
}

export function writeNotice(stream: TerminalStream, text: string): void {
  stream.write(`${noticeLines(text, stream).join('\n')}\n`);
}
