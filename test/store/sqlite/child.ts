/** Other processes at the same store: real ones, over the compiled program. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const PRELUDE = `
  const { openStore } = await import(${url('build/store/open.js')});
  const { systemClock: clock } = await import(${url('build/core/clock.js')});
  const { default: Database } = await import(${url('node_modules/better-sqlite3/lib/index.js')});
  const path = process.argv[1];
  const said = (word) => process.stdout.write(word + '\\n');
  const told = () => new Promise((resolve) => process.stdin.once('data', resolve));
`;

function url(path: string): string {
  return JSON.stringify(pathToFileURL(join(ROOT, path)).href);
}

export interface Child {
  readonly process: ChildProcess;
  /** Resolves when the child has said this word. */
  said(word: string): Promise<void>;
  /** What the child waits for with `await told()`. */
  tell(): void;
  /** Resolves when the child is gone and the kernel has freed what it held. */
  kill(): Promise<void>;
}

const NODE_ARGUMENTS = (code: string, path: string): string[] => [
  '--input-type=module',
  '--eval',
  PRELUDE + code,
  path,
];

/** Runs `code` in another process; it has `openStore`, `clock`, `Database`, `path`, `said(word)` and `told()`. */
export function startChild(code: string, path: string): Child {
  const child = spawn(process.execPath, NODE_ARGUMENTS(code, path), { stdio: ['pipe', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  return {
    process: child,
    said: async (word) => {
      while (!output.split('\n').includes(word)) {
        const ended = await Promise.race([
          once(child.stdout, 'data'),
          once(child, 'exit').then(() => 'ended'),
        ]);
        if (ended === 'ended') throw new Error(`the child ended without saying "${word}": ${output}`);
      }
    },
    tell: () => child.stdin.write('go\n'),
    kill: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'close');
    },
  };
}

/** Permissions do not bind root, so the code runs as another user where the tests run as root. */
export const ORDINARY_USER: { readonly available: boolean; readonly why: string } =
  process.getuid?.() !== 0
    ? { available: true, why: 'not root' }
    : spawnSync('setpriv', ['--version']).status === 0
      ? { available: true, why: 'setpriv' }
      : { available: false, why: 'root without setpriv: permissions do not bind root' };

/** Runs `code` as a user whom permissions bind. @returns what it wrote to stdout */
export function runAsOrdinaryUser(code: string, path: string): string {
  const node = [process.execPath, ...NODE_ARGUMENTS(code, path)];
  const command =
    process.getuid?.() === 0
      ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', ...node]
      : node;
  const [program = '', ...parameters] = command;
  const { stdout, stderr, status } = spawnSync(program, parameters, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`the child ended with ${status}: ${stderr}`);
  return stdout.trim();
}
