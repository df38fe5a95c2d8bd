import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { simulatedAnswer } from '../../src/simulator/answer.js';
import type { CallLine } from '../../src/simulator/call-log.js';
import { keyHash } from '../../src/simulator/customers.js';
import { startSimulator } from '../../src/simulator/simulator.js';
import { FakeClock } from '../support/fake-clock.js';
import { waitFor } from '../support/wait-for.js';
import { ask, askAll, askEach, chatBody, json, open, send, simulate } from './raw-call.js';

const folder = mkdtempSync(join(tmpdir(), 'llm-batch-simulator-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function fingerprint(text: string): string {
  return simulatedAnswer(chatBody(text)).fingerprint;
}

describe('books', () => {
  it('count calls by document, repeats, and what became of each', async () => {
    const simulator = await simulate();
    await askEach(simulator, ['a', 'b', 'b', 'c [[simulate:500-then-ok 1]]', 'c [[simulate:500-then-ok 1]]']);
    await askEach(simulator, ['d [[simulate:empty]]', 'e [[simulate:reset]]', 'f [[simulate:bad-request]]']);
    await waitFor('the last connection to close', () => simulator.books().openCalls === 0);
    const books = simulator.books();
    expect(books).toMatchObject({
      calls: 8,
      documents: 6,
      repeatedCalls: 2,
      accepted: 7,
      repeatedAccepted: 2,
      answered: 4,
      abandoned: 0,
      refusedByStatus: { 500: 1, 400: 1 },
      behaviours: { '500': 1, empty: 1, reset: 1, 'bad-request': 1 },
      defect: null,
    });
    expect(books.callsByDocument).toMatchObject({ [fingerprint('a')]: 1, [fingerprint('b')]: 2 });
  });

  it('tell the tokens charged and those told in usage', async () => {
    const simulator = await simulate();
    await askEach(simulator, ['a', 'bb [[simulate:no-usage]]']);
    const [plain, silent] = ['a', 'bb [[simulate:no-usage]]'].map((text) => simulatedAnswer(chatBody(text)));
    expect(simulator.books()).toMatchObject({
      promptTokens: plain?.promptTokens,
      completionTokens: plain?.completionTokens,
      tokensCharged:
        (plain?.promptTokens ?? 0) +
        (plain?.completionTokens ?? 0) +
        (silent?.promptTokens ?? 0) +
        (silent?.completionTokens ?? 0),
    });
  });

  it('find the fullest 60 seconds wherever they begin, and know no minute of the clock', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({}, clock);
    // 3 + 4 straddle the edge of the first minute; the edge of the window drops what is 60 seconds old.
    await askEach(simulator, ['x']);
    await clock.advance(58_000);
    await askEach(simulator, ['x', 'x', 'x']);
    await clock.advance(4_000);
    await askEach(simulator, ['x', 'x', 'x', 'x']);
    await clock.advance(56_000);
    await askEach(simulator, ['x']);
    expect(simulator.books().peak.requests).toBe(7);
    const { promptTokens, completionTokens } = simulatedAnswer(chatBody('x'));
    expect(simulator.books().peak.tokens).toBe(7 * (promptTokens + completionTokens));
    expect(simulator.books().peak).toMatchObject({ requestsShare: null, tokensShare: null });
  });

  it('give the share of the limit that the fullest window used', async () => {
    const simulator = await simulate({ rpm: 8, tpm: 1_000_000 });
    await askEach(simulator, ['x', 'x']);
    const { peak } = simulator.books();
    expect(peak.requestsShare).toBe(0.25);
    expect(peak.tokensShare).toBe(peak.tokens / 1_000_000);
  });

  it('keep accepted calls second by second', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({ rpm: 2 }, clock);
    await askEach(simulator, ['x']);
    await clock.advance(5_999);
    await askEach(simulator, ['x', 'x']);
    const tokens = simulator.books().tokensCharged / 2;
    expect(simulator.books().timeline).toEqual([
      { second: 0, calls: 1, accepted: 1, refused: 0, tokensCharged: tokens },
      { second: 5, calls: 2, accepted: 1, refused: 1, tokensCharged: tokens },
    ]);
  });

  it('know how many calls were open at once', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({ latencyMs: 1_000 }, clock);
    const calls = [1, 2, 3].map((each) => open(simulator, chatBody(`${each}`)));
    await waitFor('three open calls', () => clock.pendingTimers === 3);
    expect(simulator.books()).toMatchObject({ openCalls: 3, openCallsPeak: 3 });
    await clock.advance(1_000);
    await Promise.all(calls.map(({ reply }) => reply));
    await waitFor('the calls to close', () => simulator.books().openCalls === 0);
    expect(simulator.books().openCallsPeak).toBe(3);
  });

  it('catch a document that comes back before its time, and no other', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({ rpm: 1, retryAfter: 5 }, clock);
    expect(await askEach(simulator, ['first', 'second'])).toEqual([200, 429]);
    await askEach(simulator, ['third']);
    expect(simulator.books().violations.beforeRetryAfter).toBe(0);
    await clock.advance(4_999);
    await askEach(simulator, ['second']);
    expect(simulator.books().violations.beforeRetryAfter).toBe(1);
    await clock.advance(5_000);
    await askEach(simulator, ['second']);
    expect(simulator.books().violations.beforeRetryAfter).toBe(1);
  });

  it('are the same over HTTP', async () => {
    const simulator = await simulate({ rpm: 5 });
    await askEach(simulator, ['a', 'b']);
    await waitFor('the last call to close', () => simulator.books().openCalls === 0);
    const reply = await send(simulator, '', { method: 'GET', path: '/simulator/books' });
    expect(json(reply)).toEqual(simulator.books());
  });

  it('name keys by their hash', async () => {
    const simulator = await simulate();
    await ask(simulator, 'x', { key: 'sk-planted-0123456789' });
    await ask(simulator, 'x', { key: null });
    expect(simulator.books().keys.map((key) => key.keyHash)).toEqual([
      keyHash('sk-planted-0123456789'),
      'none',
    ]);
    expect(JSON.stringify(simulator.books())).not.toContain('planted');
  });

  it('forget nothing and mix nothing up over many calls', async () => {
    const simulator = await simulate({ errorRate: { '500': 0.1 } });
    await askAll(
      simulator,
      Array.from({ length: 1_500 }, (_, index) => `document ${index % 500}`),
    );
    await waitFor('the last calls to close', () => simulator.books().openCalls === 0);
    const books = simulator.books();
    expect(books).toMatchObject({ calls: 1_500, documents: 500, repeatedCalls: 1_000, accepted: 1_500 });
    expect(Object.values(books.callsByDocument).every((calls) => calls === 3)).toBe(true);
    expect(books.answered + (books.refusedByStatus[500] ?? 0)).toBe(1_500);
    expect(books.openCallsPeak).toBeLessThanOrEqual(16);
  });
});

describe('the log file', () => {
  it('gets a line per call in order of arrival, appended, without the key', async () => {
    const logFile = join(folder, 'calls.jsonl');
    const clock = new FakeClock(1_000_000);
    for (const texts of [['a', 'b [[simulate:reset]]'], ['c [[simulate:bad-request]]']]) {
      const simulator = await startSimulator({ logFile }, { clock });
      for (const text of texts) await ask(simulator, text, { key: 'sk-planted-0123456789' });
      await simulator.close();
      await clock.advance(10);
    }
    const text = readFileSync(logFile, 'utf8');
    expect(text).not.toContain('planted');
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as CallLine);
    const { promptTokens, completionTokens } = simulatedAnswer(chatBody('a'));
    expect(lines[0]).toEqual({
      timeMs: 1_000_000,
      monotonicMs: 0,
      call: 1,
      document: fingerprint('a'),
      status: 200,
      behaviour: null,
      accepted: true,
      promptTokens,
      completionTokens,
      tokensCharged: promptTokens + completionTokens,
      keyHash: keyHash('sk-planted-0123456789'),
    });
    expect(lines[1]).toMatchObject({ call: 2, status: null, behaviour: 'reset', accepted: true });
    expect(lines[2]).toMatchObject({
      timeMs: 1_000_010,
      call: 1,
      status: 400,
      accepted: false,
      tokensCharged: 0,
    });
    expect(lines).toHaveLength(3);
  });

  it('that cannot be opened is a usage error', async () => {
    const logFile = join(folder, 'missing', 'calls.jsonl');
    await expect(startSimulator({ logFile }, { clock: new FakeClock() })).rejects.toMatchObject({
      code: 'SIMULATOR_LOG',
      exitCode: 2,
    });
  });

  it('that can no longer be written is told in the books, and calls go on', async () => {
    const simulator = await simulate({ logFile: '/dev/full' });
    await ask(simulator, 'a');
    await waitFor('the defect to be noted', () => simulator.books().defect);
    expect(simulator.books().defect).toMatch(/^The log file \/dev\/full cannot be written/);
    expect((await ask(simulator, 'b')).status).toBe(200);
  });
});
