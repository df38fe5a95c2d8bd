/**
 * Paths as a store keeps them: what lies in the store's own folder relative to that folder, so that a folder that was
 * moved or copied goes on where it was; everything else as it is.
 */
import { isAbsolute, join, relative, resolve, sep } from 'node:path';

/** Marks what is relative: the name `-` of standard input never is. */
const INSIDE = `.${sep}`;

/** @param path absolute, or `-` @param folder of the store, absolute; null: it lies in no folder */
export function toStoredPath(path: string, folder: string | null): string {
  if (folder === null || !isAbsolute(path)) return path;
  const way = relative(folder, path);
  const leadsOut = way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way);
  return leadsOut ? path : INSIDE + way;
}

/** The inverse, from where the folder is now. */
export function fromStoredPath(stored: string, folder: string | null): string {
  return folder !== null && stored.startsWith(INSIDE) ? resolve(join(folder, stored)) : stored;
}
