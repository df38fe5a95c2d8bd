/**
 * A power cut, replayed: from a record of everything a process wrote and synced, the files as a disk could hold them
 * had the power gone at any moment. What was written before a file's last fsync is there; of what was written later,
 * any part may be. What this does not show: torn sectors, folder entries that were lost, disks that lie about fsync.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { traceLines } from './strace.js';

/** System calls to record. */
export const POWER_CUT_CALLS = ['pwrite64', 'fsync', 'fdatasync', 'ftruncate', 'write', 'unlink'];

type Change =
  | { readonly type: 'write'; readonly offset: number; readonly bytes: Buffer }
  | { readonly type: 'truncate'; readonly length: number };

export type DiskEvent =
  | { readonly type: 'change'; readonly path: string; readonly change: Change }
  | { readonly type: 'sync'; readonly path: string }
  | { readonly type: 'link' | 'unlink'; readonly path: string }
  /** Bytes appended to a file, such as redirected standard output. */
  | { readonly type: 'append'; readonly path: string; readonly text: string };

const CALL =
  /^\d+ +(\w+)\((?:\d+<((?:\\x..)*)>|"((?:\\x..)*)")(?:, "((?:\\x..)*)"(\.\.\.)?, \d+)?(?:, (\d+))?/;

/** @throws when the record is not whole */
export function* diskEvents(tracePath: string): Generator<DiskEvent> {
  const unfinished = new Map<string, DiskEvent>();
  for (const line of traceLines(tracePath)) {
    const thread = line.slice(0, line.indexOf(' '));
    if (line.includes(' resumed>')) {
      const event = unfinished.get(thread);
      unfinished.delete(thread);
      if (event !== undefined && !line.includes('= -1 ')) yield event;
      continue;
    }
    const event = eventOf(line);
    if (event === null || line.includes(' = -1 ')) continue;
    // An fsync counts when it returns, and so may everything else.
    if (line.includes('<unfinished ...>')) unfinished.set(thread, event);
    else yield event;
  }
}

function eventOf(line: string): DiskEvent | null {
  const found = CALL.exec(line);
  if (found === null) return null;
  const [, call, openPath, namedPath, content, cut, number] = found;
  if (cut !== undefined) throw new Error('the record cuts what was written: longer strings are needed');
  const path = bytesOf(openPath ?? namedPath ?? '').toString();
  switch (call) {
    case 'pwrite64':
      return {
        type: 'change',
        path,
        change: { type: 'write', offset: Number(number), bytes: bytesOf(content ?? '') },
      };
    case 'ftruncate':
      return { type: 'change', path, change: { type: 'truncate', length: Number(number) } };
    case 'fsync':
    case 'fdatasync':
      return { type: 'sync', path };
    case 'link':
    case 'unlink':
      return { type: call, path };
    case 'write':
      return { type: 'append', path, text: bytesOf(content ?? '').toString() };
    default:
      return null;
  }
}

function bytesOf(escaped: string): Buffer {
  return Buffer.from(escaped.replaceAll('\\x', ''), 'hex');
}

/** The files of one folder while events pass by. */
export class ReplayedDisk {
  readonly #files = new Map<string, { durable: Buffer; readonly pending: Change[] }>();

  /** @returns false for an event that changes nothing */
  take(event: DiskEvent): boolean {
    if (event.type === 'append' || event.type === 'link') return false;
    if (event.type === 'unlink') return this.#files.delete(event.path);
    let file = this.#files.get(event.path);
    if (file === undefined) {
      if (event.type === 'sync') return false;
      file = { durable: Buffer.alloc(0), pending: [] };
      this.#files.set(event.path, file);
    }
    if (event.type === 'change') {
      file.pending.push(event.change);
      return true;
    }
    const { durable, pending } = file;
    file.durable = pending.splice(0).reduce(applied, durable);
    return true;
  }

  /**
   * Writes the files into a folder, as they could be after a cut right now.
   * @param survives asked for each change that was not synced yet
   * @param wanted names of the files, as they were and as they are to be
   */
  writeInto(folder: string, wanted: ReadonlyMap<string, string>, survives: () => boolean): void {
    for (const [path, name] of wanted) {
      const file = this.#files.get(path);
      if (file === undefined) continue;
      const image = file.pending.filter(survives).reduce(applied, Buffer.from(file.durable));
      writeFileSync(join(folder, name), image);
    }
  }
}

/** Changes the buffer itself where it is long enough. */
function applied(before: Buffer, change: Change): Buffer {
  if (change.type === 'truncate') {
    if (change.length <= before.length) return before.subarray(0, change.length);
    return Buffer.concat([before, Buffer.alloc(change.length - before.length)]);
  }
  const { offset, bytes } = change;
  const missing = offset + bytes.length - before.length;
  const after = missing > 0 ? Buffer.concat([before, Buffer.alloc(missing)]) : before;
  bytes.copy(after, offset);
  return after;
}
