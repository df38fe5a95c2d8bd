/** Tools of the operating system that inject faults: whether they work here, and how a command is put under them. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** True when the command runs here and ends well; containers often forbid what is installed. */
function works(command: string, ...parameters: string[]): boolean {
  return spawnSync(command, parameters, { stdio: 'ignore', timeout: 10_000 }).status === 0;
}

const IS_LINUX = process.platform === 'linux';
export const IS_ROOT = process.getuid?.() === 0;

/** Stops a process at a system call of our choice, or lets the call fail. */
export const HAS_STRACE = IS_LINUX && works('strace', '-f', '-qq', '-o', '/dev/null', 'true');

/** Permissions do not bind root, so such cases run as another user where the tests run as root. */
export const HAS_ORDINARY_USER = IS_LINUX && (!IS_ROOT || works('setpriv', '--version'));
export const AS_ORDINARY_USER: readonly string[] = IS_ROOT
  ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
  : [];

/** Mounts that only the processes of one name space see; they vanish with the last of these. */
export const HAS_PRIVATE_MOUNTS = IS_LINUX && works('nsenter', '--version') && canMount();

function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'llm-batch-mount-'));
  try {
    return works('unshare', '-m', 'mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** libfaketime for programs with threads, as Debian, Fedora and others place it; null where it is not installed. */
export const FAKETIME_LIBRARY: string | null = IS_LINUX ? findFaketime() : null;

function findFaketime(): string | null {
  const folders = [
    '/usr/lib/x86_64-linux-gnu/faketime',
    '/usr/lib/aarch64-linux-gnu/faketime',
    '/usr/lib64/faketime',
    '/usr/lib/faketime',
    '/usr/local/lib/faketime',
  ];
  return folders.map((folder) => join(folder, 'libfaketimeMT.so.1')).find(existsSync) ?? null;
}

/** Gives a program a terminal of its own; util-linux's, since others take other options. */
export const HAS_SCRIPT = IS_LINUX && works('script', '-qec', 'true', '/dev/null');
