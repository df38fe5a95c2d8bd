import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import type { ProviderRequest, SendOptions } from '../../../src/provider/provider.js';
import { openProvider, startServer } from './loopback.js';

const BODY = '{"model":"m","input":"hi","store":false,"seed":90071992547409931}';
const REQUEST: ProviderRequest = { endpoint: 'responses', bodyJson: BODY, parts: 1 };
const options: SendOptions = { timeoutMs: 30_000, signal: new AbortController().signal };

type Answer = readonly [status: number, body: string, type?: string];

/** A server that gives these answers, one after the other, and the port to it. */
async function at(...answers: readonly Answer[]) {
  const left = [...answers];
  const { baseUrl, requests } = await startServer((_request, response: ServerResponse) => {
    const [status, body, type = 'application/json'] = left.shift() ?? [500, ''];
    response.writeHead(status, { 'content-type': type }).end(body);
  });
  return { responses: openProvider(baseUrl).remoteResponses, requests };
}

const refused = (message: string): Answer => [
  400,
  JSON.stringify({ error: { message, type: 'invalid_request_error' } }),
];

it('a response is asked for in the background and stored, whatever the body says, with every digit of it', async () => {
  const { responses, requests } = await at([200, '{"id":"resp_1","status":"Queued","output":[]}']);
  expect(await responses.create(REQUEST, options)).toMatchObject({
    isOpen: true,
    id: 'resp_1',
    state: 'queued',
  });
  expect(String(requests[0]?.body)).toBe(
    '{"model":"m","input":"hi","store":true,"seed":90071992547409931,"background":true}',
  );
});

it('one that has ended is read as the answer to a call is, one that failed as its failure', async () => {
  const output = [{ type: 'message', content: [{ type: 'output_text', text: 'fine' }] }];
  const usage = { input_tokens: 3, output_tokens: 1 };
  const { responses, requests } = await at(
    [200, JSON.stringify({ id: 'resp_1', status: 'completed', output, usage, error: null })],
    [200, '{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"broke"},"output":[]}'],
  );
  expect(await responses.retrieve('resp_1', REQUEST, options)).toMatchObject({
    ok: true,
    value: { ok: true, usage: { inputTokens: 3 }, parts: [{ outputJson: '"fine"' }] },
  });
  expect(requests[0]).toMatchObject({ method: 'GET', url: '/v1/responses/resp_1' });
  expect(await responses.retrieve('resp_1', REQUEST, options)).toMatchObject({
    ok: true,
    value: { ok: false, failure: { kind: 'overloaded', message: 'broke' } },
  });
});

it.each<[string, Answer]>([
  ['a page of a gateway', [200, '<html><title>Sign in</title></html>', 'text/html']],
  ['a body that breaks off', [200, '{"id":"resp_1","status":"comp']],
  ['an error of a gateway', [200, '{"error":{"message":"upstream","code":502}}']],
  ['an object without an id', [200, '{"status":"completed","output":[]}']],
  ['an id that would lead elsewhere', [200, '{"id":"../x","status":"completed","output":[]}']],
])('%s is nothing that the response has come to', async (_what, answer) => {
  const { responses } = await at(answer);
  expect(await responses.retrieve('resp_1', REQUEST, options)).toMatchObject({
    ok: false,
    failure: { message: expect.any(String) },
  });
});

it.each([
  "Unknown parameter: 'background'.",
  'Background mode is not supported with this model.',
  "[{'type': 'extra_forbidden', 'loc': ('body', 'background'), 'msg': 'Extra inputs are not permitted'}]",
])('a server that says %j knows nothing of it, which concerns the whole run', async (message) => {
  const { responses } = await at(refused(message));
  expect(await responses.create(REQUEST, options)).toMatchObject({
    ok: false,
    failure: { kind: 'not_found', code: 'BACKGROUND_UNSUPPORTED', httpStatus: 400 },
  });
});

it('a refusal of a document stays one', async () => {
  const { responses } = await at(
    refused("Invalid 'input': too long."),
    refused('The background of this image is dark.'),
  );
  for (let call = 0; call < 2; call += 1)
    expect(await responses.create(REQUEST, options)).toMatchObject({ failure: { kind: 'invalid_request' } });
});
