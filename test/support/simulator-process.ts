/** A simulator in a process of its own, so that a client can be killed, or its processor time taken, apart from it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { SimulatorBooks } from '../../src/simulator/books.js';
import type { SimulatorChanges, SimulatorOptions } from '../../src/simulator/options.js';

const CHILD_PATH = join(import.meta.dirname, 'simulator-child.mjs');

export interface SimulatorProcess {
  /** Base URL for a client, `http://127.0.0.1:PORT/v1`. */
  readonly url: string;
  readonly pid: number;
  books(): Promise<SimulatorBooks>;
  heal(): Promise<void>;
  reconfigure(changes: SimulatorChanges): Promise<void>;
  /** Cuts every connection and waits for the process to end. */
  stop(): Promise<void>;
}

/** Rejects with what the child said when it does not start. */
export async function startSimulatorProcess(options: SimulatorOptions = {}): Promise<SimulatorProcess> {
  const child = spawn(process.execPath, [CHILD_PATH], { stdio: ['pipe', 'pipe', 'pipe'] });
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  // A child that dies early closes its input early; its exit tells why.
  child.stdin.on('error', () => undefined);
  child.stdin.write(`${JSON.stringify(options)}\n`);
  const ended = once(child, 'exit');
  const started = once(createInterface({ input: child.stdout }), 'line').then(([line]) => String(line));
  const line = await Promise.race([started, ended.then(() => null)]);
  if (line === null) throw new Error(`The simulator did not start: ${complaint}`);
  const { url } = JSON.parse(line) as { url: string };
  const control = (method: string, path: string, body?: object): Promise<unknown> =>
    ask(method, new URL(path, url), body);
  return {
    url,
    pid: child.pid ?? 0,
    books: async () => (await control('GET', '/simulator/books')) as SimulatorBooks,
    heal: async () => void (await control('POST', '/simulator/heal')),
    reconfigure: async (changes) => void (await control('POST', '/simulator/reconfigure', changes)),
    async stop() {
      child.stdin.end();
      await ended;
    },
  };
}

/** One request on a connection of its own, so that asking leaves no socket behind. */
function ask(method: string, url: URL, body?: object): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const call = request(url, { method, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode === 200) resolve(JSON.parse(text));
        else reject(new Error(`${method} ${url.pathname} answered ${response.statusCode}: ${text}`));
      });
    });
    call.on('error', reject);
    call.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
