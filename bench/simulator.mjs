// A simulator in a process of its own, so that its processor time is not the client's.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export const CLI = fileURLToPath(new URL('../dist/cli.js', import.meta.url));

export async function startSimulator(...flags) {
  const child = spawn(process.execPath, [CLI, 'simulate', '--port', '0', ...flags], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [line] = await once(child.stdout, 'data');
  const { url } = JSON.parse(String(line).split('\n')[0]);
  return { url, stop: () => child.kill('SIGTERM') };
}
