/**
 * A file that is either complete or absent: written to a temporary sibling, flushed to the disk, then given its
 * name in one step, then the folder is flushed so that the name survives a power cut too. What is no ordinary file
 * (a pipe, `/dev/null`, a terminal) has no name to give, and is written as it stands.
 */
import { createHash, randomBytes } from 'node:crypto';
import { constants, createReadStream, type Stats } from 'node:fs';
import {
  type FileHandle,
  link,
  lstat,
  open,
  readdir,
  readlink,
  rename,
  stat,
  unlink,
} from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { WrittenFile } from '../core/run.js';
import { errorCodeOf, outputError, outputExistsError } from './output-error.js';

export interface AtomicFileOptions {
  /**
   * Whether an existing target may be replaced: any or none, or one that is still as it was written. What may not is
   * refused, now and again when the file gets its name.
   */
  readonly mayReplace: boolean | readonly WrittenFile[];
  /** Told of the file when it is complete, before it gets its name. */
  readonly onComplete?: (file: WrittenFile) => Promise<void>;
}

export interface AtomicFile {
  /** Absolute path the content will have. */
  readonly path: string;
  /** Resolves when the chunk has been handed to the operating system: await it before the next. */
  write(chunk: string | Uint8Array): Promise<void>;
  /** Makes the content durable and gives it its name. On any error nothing is left behind. */
  commit(): Promise<void>;
  /** Drops what was written; does nothing after `commit` or an earlier `abort`. */
  abort(): Promise<void>;
}

/** More than any sane chain; what Linux itself allows. */
const MOST_SYMBOLIC_LINKS = 40;
const TEMPORARY_SUFFIX = '.partial';
/** File names end at 255 bytes on the usual file systems; the temporary name adds some 40 to the target's. */
const LONGEST_NAME_PART_BYTES = 200;

/** Temporary files that this process is writing now. */
const openTemporaryPaths = new Set<string>();

/**
 * Opens a file to be written from its start. A symbolic link keeps pointing where it did: its target is replaced.
 * A replaced file's permissions carry over. Left-overs of writers that were killed are removed on the way.
 * @throws LlmBatchError OUTPUT_EXISTS, OUTPUT_PATH (exit 2) or OUTPUT_WRITE (exit 5), all naming the path;
 *   so do `write` and `commit`
 */
export async function openAtomicFile(path: string, options: AtomicFileOptions): Promise<AtomicFile> {
  try {
    const target = await inspectOutput(path);
    if (target.kind === 'special') return await openSpecialFile(path);
    if (target.kind === 'file' && !(await mayReplace(options, target.file))) throw outputExistsError(path);
    await removeLeftovers(target.path);
    return await openTemporaryFile(path, target.path, target.mode, options);
  } catch (error) {
    throw outputError(path, error);
  }
}

/** What stands at an output's path now, symbolic links followed. */
export type OutputTarget =
  | { readonly kind: 'absent'; readonly path: string; readonly mode: null }
  | { readonly kind: 'file'; readonly path: string; readonly mode: number; readonly file: WrittenFile }
  | { readonly kind: 'special' };

/** Whether the file that is there now may be replaced. */
export async function mayReplace(
  { mayReplace: allowed }: Pick<AtomicFileOptions, 'mayReplace'>,
  found: WrittenFile,
): Promise<boolean> {
  if (typeof allowed === 'boolean') return allowed;
  for (const written of allowed) if (await isUnchanged(written, found)) return true;
  return false;
}

/** Whether it is the same file, or a copy of it in a folder that was copied, and nobody has written to it. */
export async function isUnchanged(written: WrittenFile, found: WrittenFile | null): Promise<boolean> {
  if (written.path !== found?.path || written.size !== found.size) return false;
  if (written.inode === found.inode && written.modifiedAtMs === found.modifiedAtMs) return true;
  return written.sha256 !== undefined && written.sha256 === (await digestOf(found.path));
}

/** Null where it cannot be read. */
async function digestOf(path: string): Promise<string | null> {
  const hash = createHash('sha256');
  try {
    await pipeline(createReadStream(path), hash);
  } catch {
    return null;
  }
  return hash.digest('hex');
}

/** The file that is there now, links followed; null where there is none. */
export async function fileAt(path: string): Promise<WrittenFile | null> {
  const found = await statOrNull(path);
  return found?.isFile() ? identityOf(path, found) : null;
}

/** The same with the digest of what is in it. */
export async function digestedFileAt(path: string): Promise<WrittenFile | null> {
  const file = await fileAt(path);
  const sha256 = file && (await digestOf(file.path));
  return file && (sha256 === null ? file : { ...file, sha256 });
}

function identityOf(path: string, { ino, size, mtimeMs }: Stats): WrittenFile {
  return { path: resolve(path), inode: ino, size, modifiedAtMs: mtimeMs };
}

/**
 * Looks at an output's path without touching it.
 * @throws LlmBatchError OUTPUT_PATH for a folder, a circle of links, a missing parent folder or a closed descriptor
 */
export async function inspectOutput(path: string): Promise<OutputTarget> {
  try {
    const found = await statOrNull(path);
    if (found?.isDirectory()) throw Object.assign(new Error('is a directory'), { code: 'EISDIR' });
    // `/dev/fd/3` and the like name an open descriptor: replacing them by a file would go astray.
    if (isDescriptorPath(path)) {
      if (found !== null) return { kind: 'special' };
      throw Object.assign(new Error('bad file descriptor'), { code: 'EBADF' });
    }
    if (found !== null && !found.isFile()) return { kind: 'special' };
    const target = await followLinks(resolve(path));
    if (found !== null) {
      return { kind: 'file', path: target, mode: found.mode & 0o7777, file: identityOf(path, found) };
    }
    const folder = await stat(dirname(target));
    if (!folder.isDirectory()) throw Object.assign(new Error('not a directory'), { code: 'ENOTDIR' });
    return { kind: 'absent', path: target, mode: null };
  } catch (error) {
    throw outputError(path, error);
  }
}

async function statOrNull(path: string): Promise<Stats | null> {
  try {
    return await stat(path);
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

function isDescriptorPath(path: string): boolean {
  return /^\/(dev\/(stdin|stdout|stderr|fd\/)|proc\/[^/]+\/fd\/)/.test(resolve(path));
}

/** `realpath` for a link whose target may not exist yet. */
async function followLinks(path: string): Promise<string> {
  let current = path;
  for (let links = 0; links < MOST_SYMBOLIC_LINKS; links += 1) {
    try {
      if (!(await lstat(current)).isSymbolicLink()) return current;
    } catch (error) {
      if (errorCodeOf(error) === 'ENOENT') return current;
      throw error;
    }
    const next = await readlink(current);
    current = isAbsolute(next) ? next : resolve(dirname(current), next);
  }
  throw Object.assign(new Error('too many symbolic links'), { code: 'ELOOP' });
}

async function openSpecialFile(path: string): Promise<AtomicFile> {
  // Appending leaves what a redirected shell has written before; pipes and devices do not care.
  const handle = await open(path, constants.O_WRONLY | constants.O_APPEND);
  let closed = false;
  const close = async (): Promise<void> => {
    if (closed) return;
    closed = true;
    await handle.close();
  };
  return {
    path: resolve(path),
    write: (chunk) => writeFully(handle, chunk, path),
    commit: () => close().catch((error: unknown) => Promise.reject(outputError(path, error))),
    abort: () => close().catch(() => undefined),
  };
}

async function openTemporaryFile(
  shownPath: string,
  target: string,
  mode: number | null,
  options: AtomicFileOptions,
): Promise<AtomicFile> {
  const temporary = temporaryPathOf(target);
  const handle = await open(temporary, 'wx', mode ?? 0o666);
  const hash = createHash('sha256');
  openTemporaryPaths.add(temporary);
  let state: 'open' | 'closed' | 'done' = 'open';

  const discard = async (): Promise<void> => {
    if (state === 'done') return;
    if (state === 'open') await handle.close().catch(() => undefined);
    state = 'done';
    await unlink(temporary).catch(() => undefined);
    openTemporaryPaths.delete(temporary);
  };

  const publish = async (): Promise<void> => {
    // The mode given to `open` was narrowed by the umask; a replaced file's own mode holds exactly.
    if (mode !== null) await handle.chmod(mode);
    await handle.sync();
    const identity = identityOf(shownPath, await handle.stat());
    await options.onComplete?.({ ...identity, sha256: hash.digest('hex') });
    state = 'closed';
    await handle.close();
    const found = await fileAt(shownPath);
    if (found !== null && (await mayReplace(options, found))) await rename(temporary, target);
    else await renameExclusively(temporary, target, shownPath);
    state = 'done';
    openTemporaryPaths.delete(temporary);
    await syncFolder(dirname(target));
  };

  return {
    path: target,
    write(chunk) {
      hash.update(chunk);
      return writeFully(handle, chunk, shownPath);
    },
    async commit() {
      try {
        await publish();
      } catch (error) {
        await discard();
        throw outputError(shownPath, error);
      }
    },
    abort: discard,
  };
}

async function writeFully(handle: FileHandle, chunk: string | Uint8Array, path: string): Promise<void> {
  const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
  try {
    for (let offset = 0; offset < bytes.byteLength; ) {
      offset += (await handle.write(bytes, offset)).bytesWritten;
    }
  } catch (error) {
    throw outputError(path, error);
  }
}

/** Names the file only if the name is free: `rename` alone would silently replace a file that has just come. */
async function renameExclusively(temporary: string, target: string, shownPath: string): Promise<void> {
  try {
    await link(temporary, target);
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === 'EEXIST') throw outputExistsError(shownPath);
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK', 'EACCES'].includes(code)) throw error;
    // No hard links here (FAT, some network and user-space file systems): take the name first, then fill it.
    await claimName(target, shownPath);
    await rename(temporary, target);
    return;
  }
  await unlink(temporary);
}

async function claimName(target: string, shownPath: string): Promise<void> {
  try {
    await (await open(target, 'wx')).close();
  } catch (error) {
    throw errorCodeOf(error) === 'EEXIST' ? outputExistsError(shownPath) : error;
  }
}

async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    // Not every platform can flush a folder; a disk that fails must still be heard.
    if (errorCodeOf(error) === 'EIO') throw error;
  }
}

function temporaryPathOf(target: string): string {
  return join(
    dirname(target),
    `${temporaryPrefixOf(target)}${process.pid}-${randomBytes(4).toString('hex')}${TEMPORARY_SUFFIX}`,
  );
}

function temporaryPrefixOf(target: string): string {
  const name = Buffer.from(basename(target))
    .subarray(0, LONGEST_NAME_PART_BYTES)
    .toString()
    .replace(/\uFFFD+$/, '');
  return `.${name}.`;
}

/** A killed writer leaves its temporary file; the process id in the name tells that nobody writes it any more. */
async function removeLeftovers(target: string): Promise<void> {
  const folder = dirname(target);
  const prefix = temporaryPrefixOf(target);
  const names = await readdir(folder).catch(() => []);
  for (const name of names) {
    if (!name.startsWith(prefix) || !name.endsWith(TEMPORARY_SUFFIX)) continue;
    const owner = /^(\d+)-[0-9a-f]{8}$/.exec(name.slice(prefix.length, -TEMPORARY_SUFFIX.length));
    const path = join(folder, name);
    if (owner !== null && !openTemporaryPaths.has(path) && isGone(Number(owner[1]))) {
      await unlink(path).catch(() => undefined);
    }
  }
}

function isGone(processId: number): boolean {
  // Our own id and a file that is not ours: an earlier process had the id (usual in containers).
  if (processId === process.pid) return true;
  try {
    process.kill(processId, 0);
    return false;
  } catch (error) {
    return errorCodeOf(error) === 'ESRCH';
  }
}
