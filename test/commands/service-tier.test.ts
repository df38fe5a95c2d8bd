/** What a call costs by the tier that answered, over the real program and a server that names its tiers. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Loopback, startServer } from '../provider/openai/loopback.js';
import { Workspace } from '../support/workspace.js';

let workspace: Workspace;
let server: Loopback;
/** Calls that are answered with this tier; null: the one that was asked for. */
let servedTier: string | null;
let finishReason: string;
let usage: object;

beforeEach(async () => {
  workspace = new Workspace();
  servedTier = null;
  finishReason = 'stop';
  usage = { prompt_tokens: 1_000, completion_tokens: 10 };
  server = await startServer(({ body }, response) => {
    const asked = JSON.parse(body.toString()) as { service_tier?: string };
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({
        model: 'gpt-4o-mini',
        choices: [{ message: { role: 'assistant', content: 'positive' }, finish_reason: finishReason }],
        usage,
        service_tier: servedTier ?? asked.service_tier ?? 'default',
      }),
    );
  });
  workspace.writeDocuments('docs.jsonl', [{ id: 'a', text: 'x'.repeat(1_200) }]);
  // 1,000 tokens in are a dime, what is written to the cache costs a quarter more, 10 tokens out a dime.
  const standard = { input: 100, cache_write: 125, output: 10_000 };
  workspace.write('prices.json', JSON.stringify({ models: { 'gpt-4o-mini': { ...standard, flex: 0.5 } } }));
});

afterEach(() => workspace.remove());

function run(...args: string[]) {
  const environment = { OPENAI_BASE_URL: server.baseUrl };
  return workspace.run(['run', 'docs.jsonl', '--prices', 'prices.json', ...args], { environment });
}

async function cost(): Promise<{ cost_usd: number; calls_without_cost: number }> {
  const { cost_usd, calls_without_cost } = JSON.parse(
    (await workspace.run(['status', '--json'])).stdout,
  ) as Awaited<ReturnType<typeof cost>>;
  return { cost_usd, calls_without_cost };
}

describe('the cost of a call', () => {
  it.each([
    ['none', 'default', 0.2],
    ['flex', 'flex', 0.1],
    ['flex', 'default', 0.2],
    ['auto', 'flex', 0.1],
  ])('that asks for %s and is answered by %s follows the answer: $%d', async (asked, served, dollars) => {
    servedTier = served;
    expect((await run(...(asked === 'none' ? [] : ['--param', `service_tier=${asked}`]))).exitCode).toBe(0);
    expect(await cost()).toEqual({ cost_usd: dollars, calls_without_cost: 0 });
  });

  it('that priority has answered is unknown where its price is, never that of the standard tier', async () => {
    servedTier = 'priority';
    expect((await run()).exitCode).toBe(0);
    expect(await cost()).toEqual({ cost_usd: 0, calls_without_cost: 1 });
  });

  it('follows the tier also where the answer was cut off', async () => {
    servedTier = 'flex';
    finishReason = 'length';
    expect((await run()).exitCode).toBe(3);
    expect((await cost()).cost_usd).toBe(0.1);
  });

  it('counts tokens that were written to the cache at their own rate', async () => {
    usage = {
      prompt_tokens: 1_000,
      completion_tokens: 10,
      prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 800 },
    };
    expect((await run()).exitCode).toBe(0);
    expect((await cost()).cost_usd).toBe(0.22);
  });
});

describe('the record of a run', () => {
  it('names the prices of its calls and their date, the last where there were several', async () => {
    workspace.write('prices.json', JSON.stringify({ date: '2026-11-01', models: {} }));
    workspace.write('newer.json', JSON.stringify({ date: '2026-11-20', models: {} }));
    await run('--prices', 'prices.json');
    const { prices } = JSON.parse((await workspace.run(['status', '--json'])).stdout) as { prices: object };
    expect(prices).toEqual({
      source: expect.stringMatching(/^\/.*\/prices\.json \+ @pydantic\/genai-prices [\d.]+$/),
      date: '2026-11-01',
    });
    // Nothing is left to send, so nothing is priced by the newer table.
    await run('--prices', 'newer.json');
    expect((await workspace.run(['status'])).stdout).toContain('of 2026-11-01');
    workspace.writeDocuments('docs.jsonl', [{ text: 'another' }]);
    const again = await run('--prices', 'newer.json');
    expect(again.stderr).toMatch(/prices +\S+\/newer\.json \+ @pydantic\/genai-prices/);
    expect((await workspace.run(['status'])).stdout).toContain('of 2026-11-20');
  });
});

describe('--max-cost', () => {
  it('refuses priority before any call where its price is unknown', async () => {
    const { exitCode, stderr } = await run('--param', 'service_tier=priority', '--max-cost', '10');
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/no price is known for model 'gpt-4o-mini' with service_tier 'priority'/);
    expect(server.requests).toHaveLength(0);
  });

  it('sets the standard price aside for flex, whose answer may come from the standard tier', async () => {
    // The request has some 1,300 bytes, so at most 0.14 of input; half of it and of the output would fit.
    const capped = ['--param', 'service_tier=flex', '--param', 'max_tokens=10', '--max-cost'];
    expect((await run(...capped, '0.20')).exitCode).toBe(4);
    expect(server.requests).toHaveLength(0);
    expect((await run(...capped, '0.30')).exitCode).toBe(0);
    expect(await cost()).toEqual({ cost_usd: 0.1, calls_without_cost: 0 });
  });

  it('stops when the project turns out to serve a tier of which no price is known', async () => {
    workspace.writeDocuments(
      'docs.jsonl',
      ['a', 'b', 'c'].map((text) => ({ text })),
    );
    servedTier = 'priority';
    const ended = await run('--param', 'max_tokens=10', '--max-cost', '10', '--concurrency', '1');
    expect(ended.exitCode).toBe(4);
    expect(ended.stderr).toMatch(/1 of 3 documents done: budget/);
    expect(server.requests).toHaveLength(1);
  });
});
