/** A key is in the request and nowhere else: not on disk, not on a screen, not in a list of processes. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ProgramEnd } from '../support/program.js';
import { type SimulatorProcess, startSimulatorProcess } from '../support/simulator-process.js';
import { waitFor } from '../support/wait-for.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

const KEY = 'sk-planted-Zq7XhT2mWv9LcR4nBd6KpJ1s';
const OTHER_KEY = 'gw-planted-Yy3FgUa8VeN5xQo0MiH2tCjE';
/** What would give a key away, whole or in part, plain or encoded. */
const TRACES = [KEY, OTHER_KEY].flatMap((key) => [
  key,
  key.slice(0, 8),
  key.slice(3, 19),
  key.slice(-12),
  Buffer.from(key).toString('base64').slice(4, -4),
  Buffer.from(key).toString('hex'),
]);

let workspace: Workspace;
let simulator: SimulatorProcess;

beforeEach(() => {
  workspace = new Workspace();
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

/** Everything that was left in the workspace, by file, as bytes in latin1. */
function filesLeft(): Record<string, string> {
  const names = readdirSync(workspace.folder, { recursive: true, encoding: 'utf8' });
  return Object.fromEntries(
    names.flatMap((name) => {
      try {
        return [[name, readFileSync(join(workspace.folder, name), 'latin1')]];
      } catch {
        return []; // A folder.
      }
    }),
  );
}

function expectNoTrace(...ends: readonly ProgramEnd[]): void {
  const places = { ...filesLeft() };
  for (const [index, { stdout, stderr }] of ends.entries()) {
    places[`stdout ${index}`] = stdout;
    places[`stderr ${index}`] = stderr;
  }
  const found = Object.entries(places).flatMap(([place, text]) =>
    TRACES.filter((trace) => text.includes(trace)).map((trace) => `${trace} in ${place}`),
  );
  expect(found).toEqual([]);
}

describe('a planted key', () => {
  const environment = { OPENAI_API_KEY: KEY };
  const loud = ['--debug', '--log-json', '--verbose'];

  it('that is good is found nowhere after a run, not even while it runs', async () => {
    simulator = await startSimulatorProcess({ keys: [{ key: KEY }] });
    workspace.writeDocuments('docs.jsonl', [
      ...numberedDocuments(20),
      { id: 'refused', text: '[[simulate:bad-request]] A document.' },
      { id: 'stuck', text: '[[simulate:hang]] A document.' },
    ]);
    const flags = ['--base-url', simulator.url, ...loud];
    const program = workspace.start(['run', 'docs.jsonl', ...flags], { environment });
    await waitFor('the answers', async () => {
      const { documents } = await workspace
        .status()
        .catch(() => ({ documents: {} as Record<string, number> }));
      return documents['completed'] === 20 && documents['failed'] === 1;
    });
    if (existsSync('/proc/self/cmdline')) {
      const commandLine = readFileSync(`/proc/${program.child.pid}/cmdline`, 'latin1');
      expect(commandLine).toContain('docs.jsonl');
      expect(TRACES.filter((trace) => commandLine.includes(trace))).toEqual([]);
    }
    // The store is looked at while its write-ahead log is still there.
    program.kill('SIGKILL');
    const killed = await program.ended;
    expect(Object.keys(filesLeft())).toContain('llm-batch.db-wal');
    expectNoTrace(killed);

    await simulator.heal();
    const resumed = await workspace.run(['resume', ...loud], { environment });
    expect(resumed.exitCode, resumed.stderr).toBe(3);
    expectNoTrace(
      resumed,
      await workspace.run(['status', '--json']),
      await workspace.run(['failures']),
      await workspace.run(['results', '--only', 'all', '--include-input', '-o', '-']),
    );
  });

  it.each(['unauthorized', 'unauthorized full'])(
    'that the server echoes (%s) is found nowhere',
    async (fault) => {
      simulator = await startSimulatorProcess({ outage: { fault } });
      workspace.writeDocuments('docs.jsonl', numberedDocuments(5));
      const refused = await workspace.run(['run', 'docs.jsonl', '--base-url', simulator.url, ...loud], {
        environment,
      });
      expect(refused.exitCode, refused.stderr).toBe(4);
      expect(refused.stderr).toContain('Incorrect API key provided');
      expectNoTrace(
        refused,
        await workspace.run(['status']),
        await workspace.run(['status', '--json']),
        await workspace.run(['resume', ...loud], { environment }),
      );
    },
  );

  it.each([`?api_key=${OTHER_KEY}`, `@${OTHER_KEY}`])(
    'in the address is refused before it is stored',
    async (put) => {
      simulator = await startSimulatorProcess();
      workspace.writeDocuments('docs.jsonl', numberedDocuments(5));
      const address = put.startsWith('?')
        ? simulator.url + put
        : simulator.url.replace('//', `//user:${put.slice(1)}@`);
      const refused = await workspace.run(['run', 'docs.jsonl', ...loud], {
        environment: { ...environment, OPENAI_BASE_URL: address },
      });
      expect(refused.exitCode, refused.stderr).toBe(2);
      expect(refused.stderr).toContain('--api-key-env');
      expect((await simulator.books()).calls).toBe(0);
      expectNoTrace(refused);
    },
  );

  it('that no header can carry is refused without being shown', async () => {
    simulator = await startSimulatorProcess();
    workspace.writeDocuments('docs.jsonl', numberedDocuments(1));
    const refused = await workspace.run(['run', 'docs.jsonl', '--base-url', simulator.url, ...loud], {
      environment: { OPENAI_API_KEY: `${KEY} \n${OTHER_KEY}` },
    });
    expect(refused.exitCode, refused.stderr).toBe(2);
    expect(refused.stderr).toContain('API key');
    expect((await simulator.books()).calls).toBe(0);
    expectNoTrace(refused);
  });

  it.each([
    ['--api-key-env', KEY],
    ['--base-url', KEY],
  ])('given where it does not belong (%s) is not repeated', async (flag, value) => {
    simulator = await startSimulatorProcess();
    workspace.writeDocuments('docs.jsonl', numberedDocuments(1));
    const flags = ['--base-url', simulator.url, flag, value];
    const refused = await workspace.run(['run', 'docs.jsonl', ...flags, ...loud]);
    expect(refused.exitCode, refused.stderr).toBe(2);
    expectNoTrace(refused);
  });
});
