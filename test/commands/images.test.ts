/** Images and PDFs in a prompt over the real program and a loopback server that keeps what it was sent. */
import { mkdirSync, rmSync, symlinkSync, utimesSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/core/json.js';
import { runInProcess } from '../support/in-process.js';
import { sampleJpeg, samplePdf, samplePng } from '../support/sample-images.js';
import { Workspace } from '../support/workspace.js';

const PROMPT = 'What is on this picture? {{image photo}} Answer for {{name}}';

interface Part {
  readonly type: string;
  readonly text?: string;
  readonly image_url?: { readonly url: string };
  readonly file?: { readonly filename: string; readonly file_data: string };
}

let workspace: Workspace;
let server: Server;
let bodies: { readonly messages: readonly { readonly role: string; readonly content: string | Part[] }[] }[];
/** Told before the first call is answered. */
let onFirstCall: () => void;
let answer: string;

beforeEach(async () => {
  workspace = new Workspace();
  bodies = [];
  onFirstCall = () => undefined;
  answer = 'A picture.';
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (bodies.push(JSON.parse(Buffer.concat(chunks).toString())) === 1) onFirstCall();
      response.setHeader('content-type', 'application/json');
      const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: answer } }];
      const usage = { prompt_tokens: 800, completion_tokens: 5, total_tokens: 805 };
      response.end(JSON.stringify({ id: 'x', object: 'chat.completion', model: 'm', choices, usage }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  mkdirSync(workspace.path('data/photos'), { recursive: true });
  workspace.write('data/photos/cat.png', samplePng(64, 32));
  workspace.write('data/photos/dog.jpg', sampleJpeg(80, 60));
  workspace.write('data/photos/form.pdf', samplePdf());
});

afterEach(async () => {
  await new Promise((resolve) => server.close(resolve));
  workspace.remove();
});

function llmBatch(args: readonly string[], folder = workspace.folder) {
  const { port } = server.address() as AddressInfo;
  return runInProcess(args, { folder, environment: { OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1` } });
}

function documents(...photos: unknown[]): void {
  workspace.writeDocuments(
    'data/docs.jsonl',
    photos.map((photo, index) => ({ id: `doc-${index + 1}`, name: `N${index + 1}`, photo })),
  );
}

const run = (...flags: string[]) => llmBatch(['run', 'data/docs.jsonl', '--prompt', PROMPT, ...flags]);

function partsSent(call = 0): Part[] {
  const content = bodies[call]?.messages.at(-1)?.content;
  if (!Array.isArray(content)) throw new Error('no parts were sent');
  return content;
}

/** The bytes behind a data URL, and its beginning. */
function decoded(url: string | undefined): [string, Buffer] {
  const [start = '', data = ''] = (url ?? '').split(',');
  return [start, Buffer.from(data, 'base64')];
}

describe('{{image field}}', () => {
  it('sends the bytes of the files, found from the folder of the input, between the texts', async () => {
    documents(['photos/cat.png', 'photos/dog.jpg'], 'photos/form.pdf');
    expect((await run('--concurrency', '1')).exitCode).toBe(0);
    const [before, cat, dog, after, ...more] = partsSent(0);
    expect([before, after, more]).toEqual([
      { type: 'text', text: 'What is on this picture? ' },
      { type: 'text', text: ' Answer for N1' },
      [],
    ]);
    expect(decoded(cat?.image_url?.url)).toEqual(['data:image/png;base64', samplePng(64, 32)]);
    expect(decoded(dog?.image_url?.url)).toEqual(['data:image/jpeg;base64', sampleJpeg(80, 60)]);
    const [, form] = partsSent(1);
    expect(form).toMatchObject({ type: 'file', file: { filename: 'form.pdf' } });
    expect(decoded(form?.file?.file_data)).toEqual(['data:application/pdf;base64', samplePdf()]);
    expect(workspace.readLines('data/docs.results.jsonl')).toMatchObject([
      { id: 'doc-1', output: 'A picture.' },
      { id: 'doc-2', output: 'A picture.' },
    ]);
  });

  it('starts from --image-folder, and for standard input from where the program runs', async () => {
    documents('cat.png');
    expect((await run('--image-folder', 'data/photos')).exitCode).toBe(0);
    const line = '{"name":"N","photo":"data/photos/cat.png"}\n';
    const end = await workspace.run(['run', '-', '--prompt', PROMPT, '--simulate', '-o', '-'], {
      input: line,
    });
    expect(end).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('"status":"completed"') });
    expect((await run('--image-folder', 'nowhere')).stderr).toContain(workspace.path('nowhere'));
  });

  it.each([
    ['by a path that climbs out', '../secret.png'],
    ['by an absolute path', 'ABSOLUTE'],
    ['by a link that leads out', 'photos/link.png'],
    ['through a linked folder', 'photos/away/secret.png'],
  ])('reaches no file outside the folder of the input, %s, unless told to', async (_how, photo) => {
    workspace.write('secret.png', samplePng(9, 9));
    symlinkSync('../../secret.png', workspace.path('data/photos/link.png'));
    symlinkSync('../..', workspace.path('data/photos/away'));
    documents('photos/cat.png', photo === 'ABSOLUTE' ? workspace.path('secret.png') : photo);
    const end = await run();
    expect(end.exitCode).toBe(2);
    expect(end.stderr).toContain('--allow-any-path');
    expect(bodies).toEqual([]);

    expect((await run('--allow-any-path', '--concurrency', '1')).exitCode).toBe(0);
    expect(decoded(partsSent(1)[1]?.image_url?.url)[1]).toEqual(samplePng(9, 9));
  });

  it('sends no file that a link leads out to only when it is sent', async () => {
    workspace.write('secret.png', samplePng(9, 9));
    documents('photos/cat.png', 'photos/dog.jpg');
    onFirstCall = () => {
      rmSync(workspace.path('data/photos/dog.jpg'));
      symlinkSync('../../secret.png', workspace.path('data/photos/dog.jpg'));
    };
    expect((await run('--concurrency', '1')).exitCode).toBe(3);
    expect(bodies).toHaveLength(1);
    expect(workspace.readLines('data/docs.errors.jsonl')).toMatchObject([
      { id: 'doc-2', error: { kind: 'invalid_request', message: expect.stringContaining('lies outside') } },
    ]);
  });

  it('stops a run before its first call when a file is not there, and names the path', async () => {
    documents('photos/cat.png', 'photos/none.png');
    const end = await run();
    expect(end.exitCode).toBe(2);
    expect(end.stderr).toContain('line 2  the image field photo names ');
    expect(bodies).toEqual([]);
    expect((await run('--skip-bad-lines')).exitCode).toBe(0);
    expect(workspace.readLines<JsonObject>('data/docs.rejects.jsonl')).toMatchObject([
      { line: 2, reason: expect.stringContaining(workspace.path('data/photos/none.png')) },
    ]);
  });

  it('is refused in --system', async () => {
    documents('photos/cat.png');
    const end = await run('--system', '{{image photo}}');
    expect(end).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('The system template') });
  });
});

describe('a picture that changes', () => {
  it('before it is sent fails its document alone, without a call, until it is back', async () => {
    documents('photos/cat.png', 'photos/dog.jpg');
    onFirstCall = () => rmSync(workspace.path('data/photos/dog.jpg'));
    expect((await run('--concurrency', '1')).exitCode).toBe(3);
    expect(bodies).toHaveLength(1);
    expect(workspace.query('SELECT count(*) AS calls FROM calls')).toEqual([{ calls: 1 }]);
    expect(workspace.readLines('data/docs.errors.jsonl')).toMatchObject([
      {
        id: 'doc-2',
        error: {
          kind: 'invalid_request',
          message: `the image field photo names ${workspace.path('data/photos/dog.jpg')}, which does not exist`,
        },
      },
    ]);
    workspace.write('data/photos/dog.jpg', sampleJpeg(80, 60));
    await llmBatch(['retry']);
    expect((await llmBatch(['resume'])).exitCode).toBe(0);
    expect(decoded(partsSent(1)[1]?.image_url?.url)[1]).toEqual(sampleJpeg(80, 60));
  });

  it('after it was answered is a changed document to the next run', async () => {
    documents('photos/cat.png', 'photos/dog.jpg');
    await run();
    const same = await run();
    expect(same).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('2 unchanged') });
    // Another byte of the same number of bytes.
    const edited = samplePng(64, 32);
    edited[50] = 0xff;
    workspace.write('data/photos/cat.png', edited);
    const later = new Date(Date.now() + 60_000);
    utimesSync(workspace.path('data/photos/cat.png'), later, later);
    expect(await run()).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('1 document of run') });
    expect((await run('--rerun-changed')).exitCode).toBe(0);
    expect(bodies).toHaveLength(3);
    expect(decoded(partsSent(2)[1]?.image_url?.url)[1]).toEqual(edited);
  });
});

describe('a run with images', () => {
  it('goes on from another folder, without its input', async () => {
    documents('photos/cat.png', 'photos/dog.jpg');
    // Room for the first call alone.
    expect((await run('--max-tokens-total', '150000', '--concurrency', '1')).exitCode).toBe(4);
    rmSync(workspace.path('data/docs.jsonl'));
    mkdirSync(workspace.path('elsewhere'));
    const flags = ['--db', workspace.storePath, '--max-tokens-total', '9m'];
    expect((await llmBatch(['resume', ...flags], workspace.path('elsewhere'))).exitCode).toBe(0);
    expect(bodies).toHaveLength(2);
    expect(decoded(partsSent(1)[1]?.image_url?.url)[1]).toEqual(sampleJpeg(80, 60));
  });

  it('tells the model with --repair what was wrong, images and all', async () => {
    documents('photos/cat.png');
    answer = 'no JSON';
    onFirstCall = () => {
      queueMicrotask(() => {
        answer = '{"ok":true}';
      });
    };
    const end = await run('--json-mode', '--repair', '--system', 'Answer with JSON.');
    expect(end.exitCode).toBe(0);
    const [first, second] = bodies;
    expect(second?.messages.slice(0, 2)).toEqual(first?.messages);
    expect(second?.messages.slice(2)).toMatchObject([
      { role: 'assistant', content: 'no JSON' },
      { role: 'user', content: expect.stringContaining('Answer again') },
    ]);
  });

  it('keeps the paths in its results, not the pictures', async () => {
    documents('photos/cat.png');
    await run();
    const lines = await llmBatch(['results', '--include-input', '-o', '-']);
    expect(JSON.parse(lines.stdout)).toMatchObject({ document: { photo: 'photos/cat.png' } });
    const openai = await llmBatch(['results', '--format', 'openai', '-o', '-']);
    expect(JSON.parse(openai.stdout)).toMatchObject({ response: { status_code: 200 } });
  });
});

describe('an estimate with images', () => {
  it.each([[[]], [['--json']]])('shows the first request without its pictures (%j)', async (flags) => {
    const bytes = Buffer.concat([samplePng(1_024, 1_024), Buffer.alloc(500_000, 7)]);
    workspace.write('data/photos/cat.png', bytes);
    documents(['photos/cat.png', `data:image/png;base64,${bytes.toString('base64')}`]);
    const { stdout } = await llmBatch(['estimate', 'data/docs.jsonl', '--prompt', PROMPT, ...flags]);
    expect(stdout).toMatch(/data:image\/png;base64,… \(photos\/cat\.png, 50\d,\d{3} bytes\)/);
    expect(stdout).toMatch(/data:image\/png;base64,iVBOR\w{30,}… \(\d{3},\d{3} characters\)/);
    expect(stdout.length).toBeLessThan(5_000);
  });

  it('counts a picture by its size, of a file as of a data URL, and tells PDFs apart', async () => {
    const tokensOf = async (photo: unknown): Promise<number> => {
      documents(photo);
      const args = ['estimate', 'data/docs.jsonl', '--prompt', PROMPT, '--model', 'gpt-4o', '--json'];
      const report = JSON.parse((await llmBatch(args)).stdout) as {
        models: [{ input_tokens: { total: number }; uncounted_parts: number }];
      };
      expect(report.models[0].uncounted_parts).toBe(photo === 'photos/form.pdf' ? 1 : 0);
      return report.models[0].input_tokens.total;
    };
    workspace.write('data/photos/cat.png', samplePng(1_024, 1_024));
    const bare = await tokensOf('photos/form.pdf');
    expect(await tokensOf('photos/cat.png')).toBe(bare + 765);
    expect(await tokensOf(`data:image/png;base64,${samplePng(1_024, 1_024).toString('base64')}`)).toBe(
      bare + 765,
    );
    expect(await tokensOf(['photos/cat.png', 'photos/dog.jpg'])).toBe(bare + 765 + 255);
  });

  it('of a rehearsal is what the rehearsal is charged', async () => {
    documents(['photos/cat.png', 'photos/dog.jpg'], 'photos/form.pdf');
    const flags = ['--prompt', PROMPT, '--simulate'];
    const estimate = await llmBatch(['estimate', 'data/docs.jsonl', ...flags, '--json']);
    expect((await llmBatch(['run', 'data/docs.jsonl', ...flags])).exitCode).toBe(0);
    const charged = workspace
      .readLines<{ usage: { input_tokens: number } }>('data/docs.results.jsonl')
      .reduce((sum, { usage }) => sum + usage.input_tokens, 0);
    expect(JSON.parse(estimate.stdout)).toMatchObject({ models: [{ input_tokens: { total: charged } }] });
  });
});
