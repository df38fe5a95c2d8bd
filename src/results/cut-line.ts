/** A writer that was killed leaves half a line, and what is appended to it would be lost with it. */
import { closeSync, constants, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import type { Writable } from 'node:stream';

const NEWLINE = 0x0a;

/**
 * Whether what is written to a stream next would go on a line that another writer began: the stream is a file, and the
 * byte before is no newline. False wherever that cannot be known: for pipes and terminals, for files that may not be
 * read, and on systems that do not tell about open files as Linux does.
 */
export function endsInCutLine(stream: Writable): boolean {
  const { fd } = stream as { fd?: unknown };
  if (typeof fd !== 'number') return false;
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) return false;
    const place = placeOf(fd) ?? stats.size;
    return place > 0 && byteAt(fd, place - 1) !== NEWLINE;
  } catch {
    return false;
  }
}

/** Where the next write goes; null: at the end. */
function placeOf(fd: number): number | null {
  const about = readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8');
  const flags = Number.parseInt(/^flags:\s*(\d+)/m.exec(about)?.[1] ?? '0', 8);
  return flags & constants.O_APPEND ? null : Number(/^pos:\s*(\d+)/m.exec(about)?.[1]);
}

/** The descriptor itself is open for writing alone. */
function byteAt(fd: number, position: number): number | undefined {
  const file = openSync(`/proc/self/fd/${fd}`, 'r');
  try {
    const byte = Buffer.alloc(1);
    // Nothing is read in a hole behind the end, where no line was begun either.
    return readSync(file, byte, 0, 1, position) === 1 ? byte[0] : NEWLINE;
  } finally {
    closeSync(file);
  }
}
