/**
 * Paths as a store keeps them: what lies in the store's own folder, or in the project that the store is a part of,
 * relative to that folder, so that a project that was moved or copied goes on where it is; everything else as it is.
 */
import { isAbsolute, join, relative, resolve, sep } from 'node:path';

/** Marks what is relative: the name `-` of standard input never is. */
const INSIDE = `.${sep}`;

/** Where a store lies; absolute. */
export interface StorePlace {
  /** Null: it lies in no folder. */
  readonly folder: string | null;
  /** Where the user works, of which the store's folder may be a part; absent: nowhere. */
  readonly workingFolder?: string | undefined;
}

/** @param path absolute, or `-` */
export function toStoredPath(path: string, { folder, workingFolder }: StorePlace): string {
  if (folder === null || !isAbsolute(path)) return path;
  const isOfProject =
    leadsInto(folder, path) ||
    (workingFolder !== undefined && leadsInto(workingFolder, folder) && leadsInto(workingFolder, path));
  return isOfProject ? INSIDE + relative(folder, path) : path;
}

function leadsInto(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return !(way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way));
}

/** The inverse, from where the folder is now. */
export function fromStoredPath(stored: string, folder: string | null): string {
  return folder !== null && stored.startsWith(INSIDE) ? resolve(join(folder, stored)) : stored;
}
