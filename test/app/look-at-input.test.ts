/** What a command that only looks at an input shows meanwhile. */
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { CommandContext } from '../../src/app/context.js';
import { Interrupts } from '../../src/app/interrupts.js';
import { lookAtInput } from '../../src/app/look-at-input.js';
import { runSettingsFrom } from '../../src/commands/asked-settings.js';
import { resolveSettings } from '../../src/config/load.js';
import { FakeClock } from '../support/fake-clock.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

let workspace: Workspace;
let clock: FakeClock;
let stderr: PassThrough;
let context: CommandContext;

beforeEach(() => {
  workspace = new Workspace();
  workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
  clock = new FakeClock();
  stderr = new PassThrough();
  context = {
    stdin: new PassThrough(),
    stdout: new PassThrough(),
    stderr,
    environment: { NO_COLOR: '1' },
    takeSecret: () => undefined,
    command: (sentence) => sentence,
    workingFolder: workspace.folder,
    processId: 1,
    hostName: 'here',
    hasThreads: false,
    clock,
    random: () => 0,
    interrupts: new Interrupts(clock),
  };
});

afterEach(() => workspace.remove());

async function read(flags: Record<string, unknown>, look: Parameters<typeof lookAtInput>[4]) {
  const resolved = resolveSettings({ flags, environment: {}, file: {} });
  const nothing = { inputs: ['docs.jsonl'] };
  const runSettings = await runSettingsFrom(resolved, nothing, workspace.folder);
  return lookAtInput(context, resolved.settings, runSettings, ['docs.jsonl'], look);
}

function shown(): string {
  return String(stderr.read() ?? '');
}

it('nothing is shown of what is done within a second, then a line every ten', async () => {
  const found = await read({}, async ({ pages, tell }) => {
    for await (const page of pages) expect(page.documents).toHaveLength(3);
    await clock.advance(999);
    expect(shown()).toBe('');
    tell({ type: 'importing', documents: 1_234, bytesRead: 40 });
    await clock.advance(1);
    expect(shown()).toMatch(/^reading 1,234 documents · 40 B of \d+ B\n$/);
    tell({ type: 'importing', documents: 5_000, bytesRead: 99 });
    await clock.advance(10_000);
    expect(shown()).toMatch(/^reading 5,000 documents · 99 B of \d+ B\n$/);
    return 'found';
  });
  expect(found).toBe('found');
  await clock.advance(60_000);
  expect(shown()).toBe('');
  expect(clock.pendingTimers).toBe(0);
});

it.each([{ quiet: true }, { logJson: true }])('nothing is shown with %j', async (flags) => {
  await read(flags, async ({ tell }) => {
    tell({ type: 'importing', documents: 1, bytesRead: 1 });
    await clock.advance(60_000);
  });
  expect(shown()).toBe('');
});

it('Ctrl-C ends it, whatever the reading then says, and leaves no timer', async () => {
  const complaining = read({}, async ({ signal }) => {
    context.interrupts.raise('SIGINT');
    expect(signal.aborted).toBe(true);
    throw new Error('the input was closed');
  });
  expect(await complaining).toBe('interrupted');
  expect(clock.pendingTimers).toBe(0);
});

it('an error that nobody asked for is thrown', async () => {
  const failing = read({}, async () => {
    throw new Error('the disk is gone');
  });
  await expect(failing).rejects.toThrow('the disk is gone');
  expect(clock.pendingTimers).toBe(0);
});
