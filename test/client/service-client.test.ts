/** The client for programs: how long it waits, and what it makes of what the service says. */
import { describe, expect, it } from 'vitest';
import { LlmBatchClient, ServiceProblem } from '../../src/client/service-client.js';
import { type Clock, systemClock } from '../../src/core/clock.js';

const DONE = { id: 'task_1', status: 'completed', result: { output: 'fine' }, error: null };
const OPEN = { id: 'task_1', status: 'pending', result: null, error: null };

interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
}

/** A service that gives these answers in turn, and a clock on which waits take no time. */
function clientOf(answers: readonly (() => Response | never)[]) {
  const asked: Asked[] = [];
  const waitedMs: number[] = [];
  const unanswered: unknown[] = [];
  const clock: Clock = {
    ...systemClock,
    sleep: async (delayMs) => void waitedMs.push(delayMs),
  };
  const client = new LlmBatchClient({
    ...{ server: 'http://service.example/', token: 'secret', clock, random: () => 0 },
    onUnanswered: (error) => void unanswered.push(error),
    fetch: async (url, init) => {
      const { method, headers } = init as { method: string; headers: Record<string, string> };
      asked.push({ method, url: String(url), headers });
      return (answers[asked.length - 1] ?? (() => json(DONE)))();
    },
  });
  return { client, asked, waitedMs, unanswered };
}

function json(body: object, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers });
}

describe('a task that is waited for', () => {
  it('is asked for after 1, 2, 4, 8, 16, 30, 30 … seconds, or as long as the service says if that is longer', async () => {
    const open = () => json(OPEN);
    const later = () => json(OPEN, 200, { 'retry-after': '20' });
    const { client, waitedMs } = clientOf([open, open, later, open, open, open, open]);
    expect(await client.poll('task_1')).toEqual(DONE);
    expect(waitedMs).toEqual([1_000, 2_000, 20_000, 8_000, 16_000, 30_000, 30_000]);
  });

  it('outlasts a service that is gone or busy, and not a task that is', async () => {
    const gone = () => {
      throw new TypeError('fetch failed');
    };
    const busy = () => json({ detail: 'busy', code: 'store' }, 503, { 'retry-after': '10' });
    const { client, waitedMs, unanswered } = clientOf([gone, busy]);
    expect(await client.poll('task_1')).toEqual(DONE);
    expect(waitedMs).toEqual([1_000, 10_000]);
    expect(unanswered).toMatchObject([{ message: 'fetch failed' }, { status: 503 }]);
    const expired = clientOf([() => json({ detail: 'It was removed.', code: 'expired' }, 410)]).client;
    await expect(expired.poll('task_1')).rejects.toMatchObject({ status: 410, code: 'expired' });
  });

  it('is given up by the signal', async () => {
    const ending = new AbortController();
    const { client } = clientOf([
      () => {
        ending.abort(new Error('enough'));
        return json(OPEN);
      },
    ]);
    await expect(client.poll('task_1', ending.signal)).rejects.toThrow('enough');
  });
});

describe('what is handed in', () => {
  it('carries the token and a key of its own, or the one that is given', async () => {
    const accepted = () => json({ id: 'task_1', status: 'pending' }, 202);
    const { client, asked } = clientOf([accepted, accepted, accepted]);
    await client.submit({ request: { model: 'm' } });
    await client.submit({ request: { model: 'm' } });
    await client.submitRun('{}\n', { idempotencyKey: 'mine', prompt: '{{text}}' });
    const keys = asked.map(({ headers }) => headers['idempotency-key']);
    expect(new Set(keys).size).toBe(3);
    expect(keys[2]).toBe('mine');
    expect(asked[2]).toMatchObject({
      ...{ method: 'POST', url: 'http://service.example/v1/runs?prompt=%7B%7Btext%7D%7D' },
      headers: { authorization: 'Bearer secret', 'content-type': 'application/jsonl' },
    });
  });

  it('that is refused says why, field by field', async () => {
    const errors = [{ field: 'model', message: 'is unknown' }];
    const { client } = clientOf([
      () => json({ detail: 'model is unknown.', code: 'invalid_body', errors }, 422),
    ]);
    const refusal = await client.submit({}).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ServiceProblem);
    expect(refusal).toMatchObject({ status: 422, message: 'model is unknown.', errors, retryAfterMs: null });
  });
});
