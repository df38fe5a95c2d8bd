/** What a prepared call reserves and what it could cost at most, with images and without. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runSettingsFrom } from '../../src/commands/asked-settings.js';
import { resolveSettings } from '../../src/config/load.js';
import { createJoinRequests, createPrepareTask } from '../../src/runs/prepare-task.js';
import { temporaryFolder } from '../support/program.js';
import { samplePdf, samplePng } from '../support/sample-images.js';

let folder: ReturnType<typeof temporaryFolder>;

beforeEach(() => {
  folder = temporaryFolder();
  writeFileSync(
    join(folder.path, 'a.png'),
    Buffer.concat([samplePng(1_024, 1_024), Buffer.alloc(1_000_000)]),
  );
  writeFileSync(join(folder.path, 'b.pdf'), samplePdf());
});

afterEach(() => folder.remove());

const TASK = {
  taskId: 1,
  line: 1,
  key: 'a',
  attempts: 0,
  crashCount: 0,
  throttledForMs: null,
  attemptToken: 'token',
};

async function prepareTaskWith(prompt: string | null) {
  const settings = await runSettingsFrom(
    resolveSettings({
      flags: { model: 'gpt-4o', ...(prompt === null ? {} : { prompt }) },
      environment: {},
      file: {},
    }),
    { inputs: ['docs.jsonl'] },
    folder.path,
  );
  return createPrepareTask(settings, null);
}

async function prepareWith(prompt: string | null) {
  const prepare = await prepareTaskWith(prompt);
  return (document: object) => {
    const prepared = prepare({ ...TASK, body: JSON.stringify(document) });
    if ('refused' in prepared) throw new Error(prepared.refused.message);
    return { ...prepared, request: createJoinRequests(null)([prepared]) };
  };
}

const BASE64 = Buffer.alloc(1_000_000, 5).toString('base64');
const dataUrl = `data:image/png;base64,${samplePng(1_024, 1_024).toString('base64')}${BASE64}`;

it('whatever goes wrong while a request is made is its document’s failure, and never ends the run', async () => {
  const prepare = await prepareTaskWith('{{text}}');
  const task = {
    ...TASK,
    get body(): string {
      throw new RangeError('Maximum call stack size exceeded');
    },
  };
  expect(prepare(task)).toMatchObject({
    refused: {
      kind: 'invalid_request',
      message: expect.stringContaining('Maximum call stack size exceeded'),
    },
  });
});

describe('a prepared call', () => {
  it('of a text is its request at once, a token a byte at most', async () => {
    const prepare = await prepareWith('{{text}}');
    const { request, billing } = prepare({ text: 'Käse' });
    if (typeof request === 'function') throw new Error('it would be loaded');
    const bytes = Buffer.byteLength(request.bodyJson);
    expect(billing.mostInputTokens).toBeGreaterThanOrEqual(bytes);
    expect(billing.mostInputTokens).toBeLessThan(bytes + 50);
  });

  it.each([
    ['a file', 'a.png', 'function'],
    ['a data URL', dataUrl, 'object'],
    ['a URL', 'https://example.com/a.png', 'object'],
  ])('with %s of a megabyte counts an image, not its base64', async (_name, photo, type) => {
    const prepare = await prepareWith('What is it? {{image photo}}');
    const { request, billing, cost } = prepare({ photo });
    expect(typeof request).toBe(type);
    const most = 85 + 8 * 170;
    expect(billing.mostInputTokens).toBeGreaterThan(most);
    expect(billing.mostInputTokens).toBeLessThan(most + 300);
    expect(cost().tokens).toBeGreaterThan(765);
  });

  it('of a whole request with a data URL counts an image too', async () => {
    const prepare = await prepareWith(null);
    const content = [
      { type: 'text', text: 'What is it?' },
      { type: 'image_url', image_url: { url: dataUrl } },
    ];
    const { billing } = prepare({ model: 'gpt-4o', messages: [{ role: 'user', content }] });
    expect(billing.mostInputTokens).toBeLessThan(85 + 8 * 170 + 300);
  });

  it('with a PDF reserves more than its text and is bounded by the bytes of the file', async () => {
    const prepare = await prepareWith('{{image photo}}');
    const { billing, cost } = prepare({ photo: 'b.pdf' });
    expect(cost().tokens).toBeGreaterThan(5_000);
    expect(billing.mostInputTokens).toBeGreaterThan(samplePdf().length + 765);
  });

  it('with images reserves what the server has charged for such documents before', async () => {
    const prepare = await prepareWith('What is it? {{image photo}}');
    const document = { photo: 'a.png' };
    const first = prepare(document);
    const { tokens } = first.cost();
    const usage = { outputTokens: 1, cachedTokens: 0, reasoningTokens: 0 };
    first.learn({ ...usage, inputTokens: 400 });
    const second = prepare(document);
    expect(second.cost().tokens).toBeLessThan(tokens);
    expect(prepare({ photo: ['a.png', 'a.png'] }).cost().tokens).toBeGreaterThan(second.cost().tokens);
  });
});
