import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { JsonObject } from '../../src/core/json.js';
import type { Simulator } from '../../src/simulator/simulator.js';
import { waitFor } from '../support/wait-for.js';
import { json, type RawReply, send, simulate } from './raw-call.js';

const PRICES = { inputMicroUsdPerToken: 2, outputMicroUsdPerToken: 10 };

function create(simulator: Simulator, input: string, more: JsonObject = {}): Promise<RawReply> {
  const body = { model: 'gpt-4o-mini', input, background: true, ...more };
  return send(simulator, body, { path: '/v1/responses' });
}

function ask(simulator: Simulator, method: string, id: string, verb = ''): Promise<RawReply> {
  return send(simulator, '', { method, path: `/v1/responses/${id}${verb}` });
}

// biome-ignore lint/suspicious/noExplicitAny: a reply's shape is what the tests are about
async function ended(simulator: Simulator, id: string): Promise<any> {
  return waitFor('the response to end', async () => {
    const response = json(await ask(simulator, 'GET', id));
    return response.status !== 'queued' && response.status !== 'in_progress' && response;
  });
}

describe('background responses of the simulator', () => {
  it('are queued at once, done when the call would have been answered, and say what it would have said', async () => {
    const simulator = await simulate({ latencyMs: 60, prices: PRICES }, systemClock);
    const created = json(await create(simulator, 'a text'));
    expect(created).toMatchObject({
      status: 'queued',
      background: true,
      output: [],
      usage: null,
      error: null,
    });
    expect(simulator.books()).toMatchObject({ accepted: 1, promptTokens: 0 });
    const done = await ended(simulator, created.id);
    const direct = json(await create(simulator, 'a text', { background: false }));
    expect(done).toMatchObject({ status: 'completed', usage: direct.usage });
    expect(done.output[0].content).toEqual(direct.output[0].content);
    const { remote } = simulator.books();
    expect(remote.responses).toMatchObject([{ id: created.id, status: 'completed', isDeleted: false }]);
    expect(remote.responses[0]?.costUsd).toBeCloseTo(direct.usage.cost, 12);
  });

  it('are not billed where they are cancelled before they are done, and stay as they are where it is too late', async () => {
    const simulator = await simulate({ latencyMs: 3_600_000 }, systemClock);
    const { id } = json(await create(simulator, 'one'));
    expect(json(await ask(simulator, 'POST', id, '/cancel'))).toMatchObject({ id, status: 'cancelled' });
    expect(simulator.books()).toMatchObject({ promptTokens: 0, completionTokens: 0 });
    const done = json(await create(simulator, '[[simulate:slow 0]] two'));
    await ended(simulator, done.id);
    expect(json(await ask(simulator, 'POST', done.id, '/cancel'))).toMatchObject({ status: 'completed' });
  });

  it('are gone once they are deleted, or their time is over', async () => {
    const simulator = await simulate({}, systemClock);
    const { id } = json(await create(simulator, 'one'));
    expect(json(await ask(simulator, 'DELETE', id))).toMatchObject({ id, deleted: true });
    expect((await ask(simulator, 'GET', id)).status).toBe(404);
    const other = json(await create(simulator, 'two'));
    await ended(simulator, other.id);
    simulator.reconfigure({ background: { expireAfterMs: 0 } });
    expect((await ask(simulator, 'GET', other.id)).status).toBe(404);
  });

  it('fail where a call would meet an error under status 200, and are refused where calls are', async () => {
    const simulator = await simulate({}, systemClock);
    const { id } = json(await create(simulator, '[[simulate:error-in-200]]'));
    expect(await ended(simulator, id)).toMatchObject({ status: 'failed', error: { code: 'server_error' } });
    expect((await create(simulator, '[[simulate:500]]')).status).toBe(500);
    expect((await create(simulator, 'x', { store: false })).status).toBe(400);
    simulator.reconfigure({ background: { isOffered: false } });
    expect(json(await create(simulator, 'x')).error).toMatchObject({
      code: 'unknown_parameter',
      param: 'background',
    });
    expect(simulator.books().remote.responses).toHaveLength(1);
  });
});
