/** A project with its store in another place: moved, copied, opened from elsewhere. Nothing is paid for twice. */
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runInProcess } from '../support/in-process.js';
import { samplePng } from '../support/sample-images.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { type ResultLine, Workspace } from '../support/workspace.js';

const STORES = ['llm-batch.db', 'state/run.db'] as const;
const FILES = ['docs.jsonl', 'prompt.txt', 'answer.json', 'photos/a.png'];
/** What stops the run in its middle: the first two are answered. */
const STOP = '[[simulate:insufficient-quota]]';

let workspace: Workspace;
let simulator: SimulatorHere;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorHere();
  for (const folder of ['old/photos', 'old/state']) mkdirSync(workspace.path(folder), { recursive: true });
  const documents = ['one', 'two', STOP].map((text, index) => ({
    id: `d${index}`,
    text,
    photo: 'photos/a.png',
  }));
  workspace.writeDocuments('old/docs.jsonl', documents);
  workspace.write('old/photos/a.png', samplePng(4, 4));
  workspace.write('old/prompt.txt', '{{text}} {{image photo}}');
  workspace.write(
    'old/answer.json',
    JSON.stringify({ type: 'object', properties: { label: { type: 'string' } }, required: ['label'] }),
  );
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

function inFolder(folder: string, ...args: readonly string[]) {
  return runInProcess(args, { folder: workspace.path(folder), environment: { HOME: workspace.folder } });
}

function run(folder: string, store: string) {
  const files = ['--prompt-file', 'prompt.txt', '--schema', 'answer.json'];
  const way = ['--base-url', simulator.url, '--concurrency', '1', '--db', store];
  return inFolder(folder, 'run', 'docs.jsonl', ...files, ...way);
}

const callsMade = async (): Promise<number> => (await simulator.books()).calls;

/** Every file below a folder with what is in it and when it was written. */
function looksOf(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => `${path} ${statSync(path).mtimeMs} ${readFileSync(path).toString('base64')}`)
    .sort();
}

async function stopHalfWay(store: string): Promise<void> {
  expect(await run('old', store)).toMatchObject({ exitCode: 4 });
  expect(workspace.readLines<ResultLine>('old/docs.results.jsonl').map(({ id }) => id)).toEqual(['d0', 'd1']);
  await simulator.heal();
}

describe.each(STORES)('a project whose store is %s', (store) => {
  beforeEach(() => stopHalfWay(store));

  it('goes on where it was moved to, and nothing comes into being where it was', async () => {
    renameSync(workspace.path('old'), workspace.path('new'));
    const before = await callsMade();
    expect(await inFolder('new', 'resume', '--db', store)).toMatchObject({ exitCode: 0 });
    expect(await callsMade()).toBe(before + 1);
    expect(workspace.readLines('new/docs.results.jsonl')).toHaveLength(3);

    const again = await run('new', store);
    expect(again).toMatchObject({ exitCode: 0 });
    expect(again.stderr).toContain('3 unchanged');
    expect(await callsMade()).toBe(before + 1);
    expect(readdirSync(workspace.folder)).not.toContain('old');
  });

  it('goes on as a copy beside the one that it was copied from, which it leaves alone', async () => {
    cpSync(workspace.path('old'), workspace.path('copy'), { recursive: true });
    const original = looksOf(workspace.path('old'));
    const before = await callsMade();
    expect(await inFolder('copy', 'resume', '--db', store)).toMatchObject({ exitCode: 0 });
    expect(await callsMade()).toBe(before + 1);
    expect(workspace.readLines('copy/docs.results.jsonl')).toHaveLength(3);
    expect(looksOf(workspace.path('old'))).toEqual(original);

    // In the copy no other file than its own is replaced.
    workspace.write('copy/docs.results.jsonl', 'somebody wrote here\n');
    expect(await inFolder('copy', 'resume', '--db', store)).toMatchObject({ exitCode: 2 });
  });
});

it('a project is opened from another working folder, and writes into its own', async () => {
  await stopHalfWay('llm-batch.db');
  mkdirSync(workspace.path('elsewhere'));
  renameSync(workspace.path('old'), workspace.path('new'));
  const path = workspace.path(`new/llm-batch.db`);
  expect(await inFolder('elsewhere', 'results', '--db', path)).toMatchObject({ exitCode: 0 });
  expect(await inFolder('elsewhere', 'resume', '--db', path)).toMatchObject({ exitCode: 0 });
  expect(readdirSync(workspace.path('elsewhere'))).toEqual([]);
  expect(readdirSync(workspace.path('new'))).toEqual(
    expect.arrayContaining([...FILES.filter((name) => !name.includes('/')), 'docs.results.jsonl']),
  );
  expect(workspace.readLines('new/docs.results.jsonl')).toHaveLength(3);
  expect(readdirSync(workspace.folder)).not.toContain('old');
});
