import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { JsonObject } from '../../src/core/json.js';
import type { SimulatorOptions } from '../../src/simulator/options.js';
import type { Simulator } from '../../src/simulator/simulator.js';
import { waitFor } from '../support/wait-for.js';
import { chatBody, json, type RawReply, send, simulate } from './raw-call.js';

type Line = Record<string, unknown>;

function lineOf(customId: string, text: string, more: Line = {}): Line {
  return { custom_id: customId, method: 'POST', url: '/v1/chat/completions', body: chatBody(text), ...more };
}

function lines(count: number): Line[] {
  return Array.from({ length: count }, (_line, index) => lineOf(`line-${index}`, `Document ${index}`));
}

function upload(simulator: Simulator, content: string): Promise<RawReply> {
  const form =
    '--edge\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n' +
    '--edge\r\nContent-Disposition: form-data; name="file"; filename="in.jsonl"\r\nContent-Type: application/jsonl\r\n\r\n' +
    `${content}\r\n--edge--\r\n`;
  return send(simulator, form, {
    path: '/v1/files',
    headers: { 'content-type': 'multipart/form-data; boundary=edge' },
  });
}

const get = (simulator: Simulator, path: string): Promise<RawReply> =>
  send(simulator, '', { method: 'GET', path });

async function create(
  simulator: Simulator,
  content: readonly (Line | string)[],
  more: JsonObject = {},
): Promise<RawReply> {
  const text = content.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n');
  const file = json(await upload(simulator, text));
  return send(
    simulator,
    { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h', ...more },
    { path: '/v1/batches' },
  );
}

const OVER = /^(completed|failed|expired|cancelled)$/i;

// biome-ignore lint/suspicious/noExplicitAny: a reply's shape is what the tests are about
async function ended(simulator: Simulator, id: string): Promise<any> {
  let batch = { status: '' };
  await waitFor('the batch to end', async () => {
    batch = json(await get(simulator, `/v1/batches/${id}`));
    return OVER.test(batch.status);
  });
  return batch;
}

/** A batch worked off. */
async function workOff(
  simulator: Simulator,
  content: readonly (Line | string)[],
  more: JsonObject = {},
  // biome-ignore lint/suspicious/noExplicitAny: as above
): Promise<any> {
  return ended(simulator, json(await create(simulator, content, more)).id);
}

async function linesIn(simulator: Simulator, fileId: string | null): Promise<string[]> {
  if (fileId === null) return [];
  return (await get(simulator, `/v1/files/${fileId}/content`)).text.split('\n').filter((line) => line !== '');
}

// biome-ignore lint/suspicious/noExplicitAny: as above
async function parsedIn(simulator: Simulator, fileId: string | null): Promise<any[]> {
  return (await linesIn(simulator, fileId)).map((line) => JSON.parse(line));
}

const start = (options: SimulatorOptions = {}): Promise<Simulator> =>
  simulate({ batches: { durationMs: 0 }, ...options }, systemClock);

describe('a batch', () => {
  it('is answered line by line as direct calls are, at half the price, and stands in the books', async () => {
    const prices = { inputMicroUsdPerToken: 100, outputMicroUsdPerToken: 1_000 };
    const simulator = await start({ prices });
    const batch = await workOff(
      simulator,
      [...lines(3), lineOf('bad', 'x [[simulate:bad-request]]'), lineOf('gone', 'y [[simulate:reset]]')],
      { metadata: { run: '7', shard: '1' } },
    );
    expect(batch).toMatchObject({
      object: 'batch',
      status: 'completed',
      errors: null,
      request_counts: { total: 5, completed: 3, failed: 2 },
      metadata: { run: '7', shard: '1' },
    });
    const direct = json(await send(simulator, chatBody('Document 1')));
    const answers = await parsedIn(simulator, batch.output_file_id);
    const line = answers.find(({ custom_id }) => custom_id === 'line-1');
    expect(line).toMatchObject({ error: null, response: { status_code: 200 } });
    const { body } = line.response;
    expect(body.choices).toEqual(direct.choices);
    expect(body.usage).toEqual({ ...direct.usage, cost: direct.usage.cost / 2 });
    const refused = await parsedIn(simulator, batch.error_file_id);
    expect(refused.map(({ custom_id, response }) => [custom_id, response.status_code])).toEqual([
      ['bad', 400],
      ['gone', 500],
    ]);
    const { remote, calls, repeatedAccepted } = simulator.books();
    expect(calls).toBe(1);
    // Document 1 was asked directly as well.
    expect(repeatedAccepted).toBe(1);
    expect(remote).toMatchObject({ filesUploaded: 1, filesFetched: 2, linesRun: 4 });
    expect(remote.batches).toMatchObject([
      {
        metadata: { run: '7', shard: '1' },
        model: 'gpt-4o-mini',
        status: 'completed',
        total: 5,
        completed: 3,
      },
    ]);
    const cost = answers.reduce((sum, each) => sum + each.response.body.usage.cost, 0);
    expect(remote.costUsd).toBeCloseTo(cost, 9);
  });

  it('passes through its states in the time that it is given, and is cancelled with what it has', async () => {
    const simulator = await start({ batches: { durationMs: 60_000 } });
    const { id, status } = json(await create(simulator, lines(3)));
    expect(status).toBe('validating');
    const cancelled = await send(simulator, '', { path: `/v1/batches/${id}/cancel` });
    expect(json(cancelled).status).toBe('cancelling');
    const batch = await ended(simulator, id);
    expect(batch).toMatchObject({ status: 'cancelled', output_file_id: null });
    const unrun = await parsedIn(simulator, batch.error_file_id);
    expect(unrun.map(({ response, error }) => [response, error.code])).toEqual(
      Array.from({ length: 3 }, () => [null, 'batch_cancelled']),
    );
    expect((await send(simulator, '', { path: `/v1/batches/${id}/cancel` })).status).toBe(409);
  });

  it.each([
    ['a line that is no JSON', ['{"custom_id":'], 'invalid_json_line'],
    ['a custom_id used twice', [lineOf('a', 'x'), lineOf('a', 'y')], 'duplicate_custom_id'],
    ['another URL', [lineOf('a', 'x', { url: '/v1/embeddings' })], 'invalid_url'],
    [
      'two models',
      [lineOf('a', 'x'), lineOf('b', 'y', { body: chatBody('y', { model: 'other' }) })],
      'mismatched_model',
    ],
    ['a stream', [lineOf('a', 'x', { body: chatBody('x', { stream: true }) })], 'invalid_request'],
    ['no line', [], 'empty_file'],
    [
      'a model that does not exist',
      [lineOf('a', 'x', { body: chatBody('x', { model: 'none' }) })],
      'model_not_found',
    ],
  ])('with %s fails before anything is run', async (_what, content, code) => {
    const simulator = await start({ models: ['gpt-4o-mini', 'other'] });
    const batch = await workOff(simulator, content);
    expect(batch).toMatchObject({ status: 'failed', errors: { object: 'list', data: [{ code }] } });
    expect(simulator.books().remote.linesRun).toBe(0);
  });

  it('with more lines than a batch may have fails', async () => {
    const simulator = await start();
    expect(await workOff(simulator, lines(50_001))).toMatchObject({
      status: 'failed',
      errors: { data: [{ code: 'too_many_tasks' }] },
    });
  });

  it('loses, doubles, breaks and leaves out the lines that ask for it', async () => {
    const simulator = await start();
    const scripted = ['missing', 'doubled', 'malformed', 'expired'].map((what) =>
      lineOf(what, `[[simulate:line-${what}]]`),
    );
    const batch = await workOff(simulator, [lineOf('good', 'x'), ...scripted]);
    expect(batch.status).toBe('expired');
    const output = await linesIn(simulator, batch.output_file_id);
    const ids = output.map((line) => /"custom_id":"(\w+)"/.exec(line)?.[1]);
    expect(ids).toEqual(['good', 'doubled', 'doubled', 'malformed']);
    expect(() => JSON.parse(output[3] ?? '')).toThrow(SyntaxError);
    expect(await parsedIn(simulator, batch.error_file_id)).toMatchObject([
      { custom_id: 'expired', response: null, error: { code: 'batch_expired' } },
    ]);
    expect(simulator.books().remote.linesRun).toBe(4);
  });

  it.each([
    ['expire', { status: 'expired', request_counts: { total: 4, completed: 2, failed: 0 } }],
    ['lose-output', { status: 'completed', output_file_id: null }],
    ['lose-errors', { status: 'completed', error_file_id: null }],
  ] as const)('meets %s where the options say so', async (fault, found) => {
    const simulator = await start({ batches: { durationMs: 0, faults: [fault] } });
    expect(await workOff(simulator, lines(4))).toMatchObject(found);
  });

  it('answers in another order where the options say so', async () => {
    const simulator = await start({ batches: { durationMs: 0, faults: ['shuffle'] } });
    const batch = await workOff(simulator, lines(4));
    const order = (await parsedIn(simulator, batch.output_file_id)).map(({ custom_id }) => custom_id);
    expect(order).toEqual(['line-3', 'line-2', 'line-0', 'line-1']);
  });

  it('meets a full queue, once it is validated or when it is created', async () => {
    const simulator = await start({ batches: { durationMs: 0, queueTokens: 10 } });
    const failed = await workOff(simulator, lines(2));
    expect(failed.errors.data).toMatchObject([{ code: 'token_limit_exceeded' }]);
    simulator.reconfigure({ batches: { durationMs: 0, queueTokens: 10, queueFullAt: 'creation' } });
    const refused = await create(simulator, lines(2));
    expect([refused.status, json(refused).error.code]).toEqual([429, 'token_limit_exceeded']);
    simulator.heal();
    expect((await workOff(simulator, lines(2))).status).toBe('completed');
  });

  it('speaks the dialects: capitals of Together, the bare list of Groq, the empty error file of Azure', async () => {
    const together = await start({ headers: 'together' });
    const bare = { custom_id: 'a', body: chatBody('x') };
    expect((await workOff(together, [bare])).status).toBe('COMPLETED');
    const groq = await start({ headers: 'groq' });
    expect((await workOff(groq, ['x'])).errors).toMatchObject([{ code: 'invalid_json_line' }]);
    const azure = await start({ headers: 'azure' });
    const batch = await workOff(azure, [lineOf('a', 'x', { url: '/chat/completions' })]);
    expect(batch.status).toBe('completed');
    expect((await get(azure, `/v1/files/${batch.error_file_id}/content`)).text).toBe('');
  });
});

describe('requests about files and batches', () => {
  it('are refused without a good key', async () => {
    const simulator = await start({ keys: [{ key: 'sk-other' }] });
    expect((await get(simulator, '/v1/batches')).status).toBe(401);
    expect((await upload(simulator, 'x')).status).toBe(401);
  });

  it('list newest first, a page at a time, and fetch and remove files', async () => {
    const simulator = await start();
    const ids: string[] = [];
    for (let index = 0; index < 3; index += 1) ids.unshift((await workOff(simulator, lines(1))).id);
    const first = json(await get(simulator, '/v1/batches?limit=2'));
    expect([first.data.map(({ id }: { id: string }) => id), first.has_more]).toEqual([ids.slice(0, 2), true]);
    const second = json(await get(simulator, `/v1/batches?limit=2&after=${first.last_id}`));
    expect([second.data.map(({ id }: { id: string }) => id), second.has_more]).toEqual([ids.slice(2), false]);

    const file = json(await upload(simulator, 'one\r\n--edg\r\ntwo'));
    expect(file).toMatchObject({ object: 'file', bytes: 15, filename: 'in.jsonl', purpose: 'batch' });
    expect((await get(simulator, `/v1/files/${file.id}/content`)).text).toBe('one\r\n--edg\r\ntwo');
    expect(json(await send(simulator, '', { method: 'DELETE', path: `/v1/files/${file.id}` })).deleted).toBe(
      true,
    );
    expect((await get(simulator, `/v1/files/${file.id}`)).status).toBe(404);
  });

  it('meet the faults that the options name: before, after and in the middle of their work', async () => {
    const simulator = await start();
    const fault = (route: string, name: string) =>
      simulator.reconfigure({ routeFaults: [{ route, fault: name }] } as SimulatorOptions);
    fault('upload', 'reset');
    expect((await upload(simulator, 'x')).brokenBy).not.toBeNull();
    expect(simulator.books().remote.filesUploaded).toBe(0);
    fault('create', 'drop');
    expect(await create(simulator, lines(1))).toMatchObject({ status: null });
    expect(simulator.books().remote.batches).toHaveLength(1);
    fault('batches', '500');
    expect((await get(simulator, '/v1/batches')).status).toBe(500);
    // Once, unless it is said how often.
    const { data } = json(await get(simulator, '/v1/batches'));
    const { output_file_id: output } = await ended(simulator, data[0].id);
    fault('content', 'cut');
    const cut = await get(simulator, `/v1/files/${output}/content`);
    expect([cut.status, cut.brokenBy]).toEqual([200, expect.any(String)]);
    expect(cut.text.length).toBeGreaterThan(0);
    expect(simulator.books().defect).toBeNull();
  });
});
