/** A local image or PDF: looked at when its document is read, read whole only when it is sent. */
import { closeSync, openSync, readSync, realpathSync, type Stats, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { isAbsolute, relative, resolve, sep } from 'node:path';
import pLimit from 'p-limit';
import type { AttachedFile, ImagePlace } from '../core/attachment.js';
import {
  type ImageSize,
  LONG_HEAD_BYTES,
  type MediaType,
  mediaTypeOf,
  SHORT_HEAD_BYTES,
  sizeOfImage,
} from '../core/image-head.js';

/**
 * What OpenAI takes of images and of files in one request (its guides to vision and to file inputs); others take less
 * and say so themselves.
 */
export const MOST_FILE_BYTES = 50_000_000;

/** Of Linux, the longest of all systems'. */
const LONGEST_PATH = 4_096;

/** @returns the file, or a clause that says why it cannot be sent */
export function inspectFile(path: string, place: ImagePlace): AttachedFile | string {
  // No file system takes it, and Node throws for it.
  if (path.includes('\0')) return 'holds a NUL character, which no path can have';
  if (path.length > LONGEST_PATH) return 'is too long for a path; base64 goes behind data:image/png;base64,';
  const absolutePath = resolve(place.folder, path);
  try {
    const realPath = realPathIn(place, absolutePath);
    if (realPath === null) return clause(absolutePath, outside(place));
    const stats = statSync(realPath);
    const problem = problemOf(stats);
    if (problem !== null) return clause(absolutePath, problem);
    const { mediaType, size } = lookInto(realPath);
    if (mediaType === null) return clause(absolutePath, UNKNOWN_KIND);
    const changedAtMs = Math.round(stats.mtimeMs);
    return { path, absolutePath, place, mediaType, size, bytes: stats.size, changedAtMs };
  } catch (error) {
    return clause(absolutePath, failureOf(error));
  }
}

/** As many as Node reads at once anyway: hundreds of calls that leave together must not use up the open files. */
const reading = pLimit(4);

/** @returns the file as a data URL; or the clause that says why it cannot be sent any more */
export function loadFile(file: AttachedFile): Promise<string | { readonly problem: string }> {
  return reading(() => readWhole(file));
}

async function readWhole({
  absolutePath,
  place,
  mediaType,
}: AttachedFile): Promise<string | { readonly problem: string }> {
  const refused = (problem: string) => ({ problem: clause(absolutePath, problem) });
  try {
    // Looked at anew: a link may lead somewhere else by now.
    const realPath = realPathIn(place, absolutePath);
    if (realPath === null) return refused(outside(place));
    const handle = await open(realPath);
    try {
      const problem = problemOf(await handle.stat());
      if (problem !== null) return refused(problem);
      const content = await handle.readFile();
      const found = mediaTypeOf(content);
      if (found === null) return refused(UNKNOWN_KIND);
      if (found !== mediaType) return refused(`which is ${found} by now and was ${mediaType}`);
      if (content.length > MOST_FILE_BYTES) return refused(tooLarge(content.length));
      return `data:${mediaType};base64,${content.toString('base64')}`;
    } finally {
      await handle.close();
    }
  } catch (error) {
    return refused(failureOf(error));
  }
}

/** `12,345 bytes`, `1.2 MB`. */
export function showBytes(bytes: number): string {
  return bytes < 1_000_000 ? `${bytes.toLocaleString('en-US')} bytes` : `${(bytes / 1e6).toFixed(1)} MB`;
}

const UNKNOWN_KIND = 'which is no PNG, JPEG, GIF, WebP or PDF';

/** The file itself, links followed; null where it lies outside the place. */
function realPathIn({ folder, isOpen }: ImagePlace, absolutePath: string): string | null {
  const realPath = realpathSync(absolutePath);
  if (isOpen) return realPath;
  const way = relative(realpathSync(folder), realPath);
  return way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way) ? null : realPath;
}

function outside({ folder }: ImagePlace): string {
  return `which lies outside ${folder}`;
}

function clause(absolutePath: string, problem: string): string {
  return `names ${absolutePath}, ${problem}`;
}

function problemOf(stats: Stats): string | null {
  if (stats.isDirectory()) return 'which is a folder';
  // To open a pipe would wait for whoever writes there.
  if (!stats.isFile()) return 'which is no regular file';
  if (stats.size === 0) return 'which is empty';
  return stats.size > MOST_FILE_BYTES ? tooLarge(stats.size) : null;
}

function tooLarge(bytes: number): string {
  return `which has ${showBytes(bytes)}, over the ${showBytes(MOST_FILE_BYTES)} that a request may carry`;
}

function lookInto(path: string): { mediaType: MediaType | null; size: ImageSize | null } {
  const file = openSync(path, 'r');
  try {
    const head = readHead(file, SHORT_HEAD_BYTES);
    const mediaType = mediaTypeOf(head);
    if (mediaType === null || mediaType === 'application/pdf') return { mediaType, size: null };
    const size =
      sizeOfImage(head) ?? (mediaType === 'image/jpeg' ? sizeOfImage(readHead(file, LONG_HEAD_BYTES)) : null);
    return { mediaType, size };
  } finally {
    closeSync(file);
  }
}

function readHead(file: number, most: number): Buffer {
  const head = Buffer.allocUnsafe(most);
  return head.subarray(0, readSync(file, head, 0, most, 0));
}

function failureOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return 'which does not exist';
    case 'EACCES':
    case 'EPERM':
      return 'which may not be read by this user';
    default:
      // Behind the comma Node names the path again.
      return `which cannot be read: ${message.split(',', 1)[0]}`;
  }
}
