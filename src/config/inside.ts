/** Whether a path leads out of a folder, links followed. */
import { readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';

/** @param path may not exist yet, nor the folders it would be in */
export function isInside(folder: string, path: string): boolean {
  const way = relative(realPath(folder), realPath(path));
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** As far as the path exists; what does not exist yet is where it would be made. */
function realPath(path: string): string {
  const absolute = resolve(path);
  try {
    return realpathSync(absolute);
  } catch (error) {
    const folder = dirname(absolute);
    if (folder === absolute || (error as NodeJS.ErrnoException).code === 'ELOOP') return absolute;
    const target = targetOf(absolute);
    return target === null ? join(realPath(folder), basename(absolute)) : realPath(target);
  }
}

/** Where a link without a target points to; null for what is no link. */
function targetOf(path: string): string | null {
  try {
    return resolve(dirname(path), readlinkSync(path));
  } catch {
    return null;
  }
}
