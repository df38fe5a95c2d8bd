import { describe, expect, it } from 'vitest';
import { simulatedAnswer } from '../../src/simulator/answer.js';
import { BEHAVIOURS } from '../../src/simulator/directive.js';
import { FakeClock } from '../support/fake-clock.js';
import { waitFor } from '../support/wait-for.js';
import { ask, chatBody, json, open, type RawReply, send, simulate } from './raw-call.js';

const KEY = 'sk-test-0123456789-planted-key';

/** What one call of a document with this directive gets. */
async function meet(directive: string): Promise<RawReply> {
  return ask(await simulate(), `Look at this. [[simulate:${directive}]]`, { key: KEY });
}

/** What `calls` calls of the document get, one after another. */
async function statusesOf(directive: string, calls: number): Promise<(number | null)[]> {
  const simulator = await simulate();
  const statuses: (number | null)[] = [];
  for (let call = 0; call < calls; call += 1) {
    statuses.push((await ask(simulator, `[[simulate:${directive}]] Look.`)).status);
  }
  return statuses;
}

function answerTo(directive: string): string {
  return simulatedAnswer(chatBody(`Look at this. [[simulate:${directive}]]`)).text;
}

describe('answers', () => {
  it('ok is an ordinary answer', async () => {
    const reply = await meet('ok');
    expect(reply.status).toBe(200);
    expect(reply.headers['content-type']).toMatch(/^application\/json/);
    expect(reply.headers['x-request-id']).toBe('req_simulated_1');
    const body = json(reply);
    expect(body.object).toBe('chat.completion');
    expect(body.model).toBe('simulated/gpt-4o-mini');
    expect(body.choices).toHaveLength(1);
    expect(body.choices[0]).toMatchObject({
      index: 0,
      finish_reason: 'stop',
      message: { role: 'assistant', content: answerTo('ok'), refusal: null },
    });
    const { promptTokens, completionTokens } = simulatedAnswer(chatBody('Look at this. [[simulate:ok]]'));
    expect(body.usage).toMatchObject({
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    });
  });

  it('slow answers after its time and not before', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({}, clock);
    const { reply, status } = open(simulator, chatBody('[[simulate:slow 5000]]'));
    await waitFor('the answer to be scheduled', () => clock.pendingTimers === 1);
    await clock.advance(4_999);
    expect(status()).toBeNull();
    await clock.advance(1);
    expect((await reply).status).toBe(200);
  });

  it('slow-body sends headers at once, blanks, and the answer after its time', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({}, clock);
    const { reply, received, status } = open(simulator, chatBody('[[simulate:slow-body 1000]]'));
    await waitFor('the headers', () => status() === 200);
    await clock.advance(999);
    expect(received().trim()).toBe('');
    await clock.advance(1);
    const whole = await reply;
    expect(whole.text).toMatch(/^\n{2,}\{/);
    expect(json(whole).choices[0].finish_reason).toBe('stop');
  });

  it('no-usage leaves usage out', async () => {
    const body = json(await meet('no-usage'));
    expect(body.usage).toBeUndefined();
    expect(body.choices[0].message.content).toBe(answerTo('no-usage'));
  });

  it('nul puts a NUL into the answer', async () => {
    const reply = await meet('nul');
    expect(reply.text).toContain('\\u0000');
    expect(json(reply).choices[0].message.content).toBe(`${answerTo('nul')}\u0000`);
  });

  it('surrogate puts half a pair into the answer, as an escape', async () => {
    const reply = await meet('surrogate');
    expect(reply.text).toContain('\\ud83d"');
    expect(json(reply).choices[0].message.content).toBe(`${answerTo('surrogate')}\ud83d`);
  });
});

describe('answers that are none', () => {
  it('empty has no choices', async () => {
    const reply = await meet('empty');
    expect(reply.status).toBe(200);
    expect(json(reply).choices).toEqual([]);
    expect(json(reply).usage.total_tokens).toBeGreaterThan(0);
  });

  it('no-content has an empty text', async () => {
    const choice = json(await meet('no-content')).choices[0];
    expect(choice).toMatchObject({ finish_reason: 'stop', message: { content: '' } });
  });

  it('length stops half way', async () => {
    const choice = json(await meet('length')).choices[0];
    const whole = answerTo('length');
    expect(choice.finish_reason).toBe('length');
    expect(choice.message.content).toBe(whole.slice(0, Math.ceil(whole.length / 2)));
  });

  it('content-filter says so', async () => {
    expect(json(await meet('content-filter')).choices[0]).toMatchObject({
      finish_reason: 'content_filter',
      message: { content: '' },
    });
  });

  it('refuse has a refusal and no content', async () => {
    const { message } = json(await meet('refuse')).choices[0];
    expect(message.content).toBeNull();
    expect(message.refusal).toMatch(/cannot help/);
  });

  it('error-in-200 has a numeric code and no choices', async () => {
    const reply = await meet('error-in-200 429');
    expect(reply.status).toBe(200);
    expect(json(reply)).toMatchObject({ error: { code: 429, message: 'Provider returned error' } });
    expect(json(reply).choices).toBeUndefined();
  });

  it('html is a page with status 200', async () => {
    const reply = await meet('html');
    expect(reply.status).toBe(200);
    expect(reply.headers['content-type']).toMatch(/^text\/html/);
    expect(reply.text).toMatch(/^<!DOCTYPE html>/);
  });

  it('no-body is status 200 and nothing', async () => {
    const reply = await meet('no-body');
    expect(reply).toMatchObject({ status: 200, text: '', brokenBy: null });
    expect(reply.headers['content-length']).toBe('0');
  });

  it('truncated is cut, under the content-length of what is left', async () => {
    const reply = await meet('truncated');
    expect(reply).toMatchObject({ status: 200, brokenBy: null });
    expect(Number(reply.headers['content-length'])).toBe(Buffer.byteLength(reply.text));
    expect(() => json(reply)).toThrow(SyntaxError);
  });
});

describe('broken connections', () => {
  it('hang never answers', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({}, clock);
    const { call, reply, status } = open(simulator, chatBody('[[simulate:hang]]'));
    await waitFor('the call to arrive', () => simulator.books().calls === 1);
    await clock.advance(3_600_000);
    expect(status()).toBeNull();
    call.destroy();
    expect((await reply).status).toBeNull();
    await waitFor('the books to close', () => simulator.books().openCalls === 0);
    expect(simulator.books()).toMatchObject({ accepted: 1, answered: 0, abandoned: 1 });
  });

  it('drip sends headers and a blank now and then for ever', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({}, clock);
    const { call, received, status } = open(simulator, chatBody('[[simulate:drip 1000]]'));
    await waitFor('the headers', () => status() === 200);
    await clock.advance(3_600_000);
    await waitFor('an hour of blanks', () => received().length === 3_601);
    expect(received().trim()).toBe('');
    call.destroy();
    await waitFor('the timer to end with the connection', () => clock.pendingTimers === 0);
  });

  it('reset has no headers', async () => {
    expect(await meet('reset')).toMatchObject({ status: null, brokenBy: 'ECONNRESET', text: '' });
  });

  it('reset-mid-body has headers and half a body', async () => {
    const reply = await meet('reset-mid-body');
    expect(reply).toMatchObject({ status: 200, brokenBy: 'ECONNRESET' });
    expect(reply.text.length).toBe(Math.floor(Number(reply.headers['content-length']) / 2));
  });
});

describe('throttling and money', () => {
  it('429 is a throttle that does not say for how long', async () => {
    const reply = await meet('429');
    expect(reply.status).toBe(429);
    expect(reply.headers['retry-after']).toBeUndefined();
    expect(json(reply).error).toMatchObject({ type: 'requests', code: 'rate_limit_exceeded', param: null });
    expect(json(reply).error.message).not.toMatch(/try again/);
  });

  it('retry-after tells the seconds that are left and answers when they have passed', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({}, clock);
    const again = (): Promise<RawReply> => ask(simulator, '[[simulate:retry-after 5]]');
    const first = await again();
    expect(first.status).toBe(429);
    expect(first.headers['retry-after']).toBe('5');
    expect(json(first).error.message).toMatch(/Please try again in 5s\.$/);
    await clock.advance(3_500);
    expect((await again()).headers['retry-after']).toBe('2');
    await clock.advance(1_499);
    expect((await again()).status).toBe(429);
    await clock.advance(1);
    expect((await again()).status).toBe(200);
    expect(simulator.books().violations.beforeRetryAfter).toBe(2);
  });

  it('slow-down has its own code', async () => {
    const reply = await meet('slow-down');
    expect(reply.status).toBe(429);
    expect(json(reply).error).toMatchObject({ type: 'rate_limit_error', code: 'slow_down' });
  });

  it('insufficient-quota is told from throttling by its code alone', async () => {
    const reply = await meet('insufficient-quota');
    expect(reply.status).toBe(429);
    expect(json(reply).error).toMatchObject({ type: 'insufficient_quota', code: 'insufficient_quota' });
  });

  it('request-too-large-429 names limit and request and no time', async () => {
    const reply = await meet('request-too-large-429');
    expect(reply.status).toBe(429);
    expect(json(reply).error).toMatchObject({ type: 'tokens', code: 'rate_limit_exceeded' });
    expect(json(reply).error.message).toMatch(
      /^Request too large for gpt-4o-mini .*Limit 30000, Requested 300\d\d\./,
    );
    expect(reply.headers['retry-after']).toBeUndefined();
  });

  it('payment-required has a numeric code', async () => {
    const reply = await meet('payment-required');
    expect(reply.status).toBe(402);
    expect(json(reply).error.code).toBe(402);
  });
});

describe('refusals', () => {
  it.each([
    ['too-long', 400, { type: 'invalid_request_error', code: 'context_length_exceeded', param: 'messages' }],
    ['bad-request', 400, { type: 'invalid_request_error', code: 'invalid_value', param: 'messages' }],
    [
      'content-filter-400',
      400,
      { code: 'content_filter', innererror: { code: 'ResponsibleAIPolicyViolation' } },
    ],
    ['unauthorized', 401, { code: 'invalid_api_key' }],
    ['forbidden', 403, { type: 'permission_error' }],
    ['model-not-found', 404, { code: 'model_not_found' }],
  ])('%s is %i', async (directive, status, error) => {
    const reply = await meet(directive);
    expect(reply.status).toBe(status);
    expect(json(reply).error).toMatchObject(error);
  });

  it('unauthorized echoes the ends of the key, or all of it', async () => {
    const masked = json(await meet('unauthorized')).error.message;
    expect(masked).toContain('sk-test-*');
    expect(masked).toContain('-key');
    expect(masked).not.toContain(KEY);
    expect(json(await meet('unauthorized full')).error.message).toContain(KEY);
  });

  it("too-large-413 is a proxy's page without the server's headers", async () => {
    const reply = await meet('too-large-413');
    expect(reply.status).toBe(413);
    expect(reply.headers['content-type']).toMatch(/^text\/html/);
    expect(reply.headers['x-request-id']).toBeUndefined();
  });

  it('unprocessable-422 has a list of details and no error', async () => {
    const reply = await meet('unprocessable-422');
    expect(reply.status).toBe(422);
    expect(json(reply)).toMatchObject({ detail: [{ loc: ['body', 'messages', 0, 'content'] }] });
    expect(json(reply).error).toBeUndefined();
  });

  it('redirect points to another origin, and followers are booked', async () => {
    const simulator = await simulate();
    const reply = await ask(simulator, '[[simulate:redirect]]');
    expect(reply.status).toBe(307);
    const location = new URL(String(reply.headers.location));
    expect(location.origin).not.toBe(new URL(simulator.url).origin);
    expect(simulator.books().violations.followedRedirect).toBe(0);
    await send(simulator, chatBody('followed'), { path: location.pathname });
    expect(simulator.books().violations.followedRedirect).toBe(1);
  });
});

describe('servers in trouble', () => {
  it.each([408, 409, 498, 500, 502, 503, 504, 529])('%i has that status for ever', async (status) => {
    expect(await statusesOf(String(status), 3)).toEqual([status, status, status]);
  });

  it("529 has Anthropic's shape", async () => {
    expect(json(await meet('529'))).toMatchObject({ type: 'error', error: { type: 'overloaded_error' } });
  });

  it("html-502 is a gateway's page", async () => {
    const reply = await meet('html-502');
    expect(reply.status).toBe(502);
    expect(reply.headers['content-type']).toMatch(/^text\/html/);
    expect(reply.headers['x-request-id']).toBeUndefined();
  });
});

describe('NAME-then-ok', () => {
  it.each([
    ['429-then-ok', [429, 429, 200, 200]],
    ['429-then-ok 3', [429, 429, 429, 200]],
    ['500-then-ok 1', [500, 200, 200]],
    ['503-then-ok', [503, 503, 200]],
    ['529-then-ok 1', [529, 200]],
    ['408-then-ok 1', [408, 200]],
    ['409-then-ok 1', [409, 200]],
    ['html-502-then-ok 1', [502, 200]],
    ['reset-then-ok 1', [null, 200]],
    ['insufficient-quota-then-ok 1', [429, 200]],
    ['500-then-ok 0', [200]],
  ])('%s gives %j', async (directive, statuses) => {
    expect(await statusesOf(directive, statuses.length)).toEqual(statuses);
  });

  it('counts each document for itself', async () => {
    const simulator = await simulate();
    const status = async (text: string): Promise<number | null> => (await ask(simulator, text)).status;
    expect(await status('one [[simulate:500-then-ok 1]]')).toBe(500);
    expect(await status('two [[simulate:500-then-ok 1]]')).toBe(500);
    expect(await status('one [[simulate:500-then-ok 1]]')).toBe(200);
  });

  it('does not count a call that a limit turned away', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({ rpm: 1 }, clock);
    const status = async (text: string): Promise<number | null> => (await ask(simulator, text)).status;
    expect(await status('other')).toBe(200);
    expect(await status('[[simulate:500-then-ok 1]]')).toBe(429);
    await clock.advance(60_000);
    expect(await status('[[simulate:500-then-ok 1]]')).toBe(500);
    await clock.advance(60_000);
    expect(await status('[[simulate:500-then-ok 1]]')).toBe(200);
    expect(simulator.books().behaviours).toEqual({ '500': 1 });
  });
});

describe('reading directives', () => {
  it('only user messages are obeyed', async () => {
    const simulator = await simulate();
    const messages = [
      { role: 'system', content: '[[simulate:500]]' },
      { role: 'user', content: 'hello' },
    ];
    expect((await send(simulator, { model: 'm', messages })).status).toBe(200);
  });

  it('a text part of a list counts as well', async () => {
    const simulator = await simulate();
    const content = [{ type: 'text', text: '[[simulate:503]]' }];
    expect((await send(simulator, { model: 'm', messages: [{ role: 'user', content }] })).status).toBe(503);
  });

  it('an unknown directive is refused by name', async () => {
    const reply = await meet('explode now');
    expect(reply.status).toBe(400);
    expect(json(reply).error).toMatchObject({ code: 'unknown_directive' });
    expect(json(reply).error.message).toContain('"explode now"');
  });

  it('they can be switched off', async () => {
    const simulator = await simulate({ directives: false });
    expect((await ask(simulator, '[[simulate:500]]')).status).toBe(200);
  });

  it('every behaviour has a line of help', () => {
    for (const [name, help] of Object.entries(BEHAVIOURS))
      expect(help, name).toMatch(/^(is|has|gets|meets|fails|names) /);
  });
});
