/** Caps on money, tokens and failures, over the real program and a simulated server that states its prices. */
import { existsSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { waitFor } from '../support/wait-for.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

let workspace: Workspace;
let simulator: SimulatorHere;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorHere({
    latencyMs: 10,
    outputTokens: 1,
    prices: { inputMicroUsdPerToken: 0, outputMicroUsdPerToken: 100_000 },
  });
  workspace.writeDocuments('docs.jsonl', numberedDocuments(50));
  // A dime for a token out, nothing for tokens in: a call with a cap of one token costs exactly 0.10.
  workspace.write(
    'prices.json',
    JSON.stringify({ models: { 'gpt-4o-mini': { input: 0, output: 100_000 } } }),
  );
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

function run(...args: string[]) {
  const environment = { OPENAI_BASE_URL: simulator.url };
  return workspace.run([...args, '--prices', 'prices.json'], { environment });
}

describe('--max-cost', () => {
  const capped = ['run', 'docs.jsonl', '--param', 'max_tokens=1', '--concurrency', '50'];

  it('of 1.00 at 0.10 a call sends exactly ten, stops with exit 4, and resumes under a higher cap', async () => {
    const first = await run(...capped, '--max-cost', '1.00');
    expect(first.exitCode).toBe(4);
    expect(first.stderr).toMatch(/could pass --max-cost; `resume` takes a higher one/);
    expect((await simulator.books()).calls).toBe(10);

    const again = await run('resume');
    expect(again.exitCode).toBe(4);
    expect((await simulator.books()).calls).toBe(10);

    const more = await run('resume', '--max-cost', '1.50');
    expect(more.exitCode).toBe(4);
    expect((await simulator.books()).calls).toBe(15);

    const rest = await run('resume', '--max-cost', '5');
    expect(rest.exitCode).toBe(0);
    expect((await simulator.books()).calls).toBe(50);
    expect(await workspace.results()).toHaveLength(50);
  });

  it('counts calls that a crash cut off, which may have been billed, with the most they can be', async () => {
    await simulator.reconfigure({ latencyMs: 600_000 });
    const environment = { OPENAI_BASE_URL: simulator.url };
    const first = workspace.start([...capped, '--max-cost', '1.00', '--prices', 'prices.json'], {
      environment,
    });
    await waitFor('ten open calls', async () => (await simulator.books()).calls === 10);
    first.kill('SIGKILL');
    await first.ended;
    await simulator.reconfigure({ latencyMs: 10 });

    const again = await run('resume');
    expect(again.exitCode).toBe(4);
    expect((await simulator.books()).calls).toBe(10);
    const { stdout } = await workspace.run(['status']);
    expect(stdout).toMatch(/up to \$1\.00 more for 10 calls cut off/);

    const more = await run('resume', '--max-cost', '1.50');
    expect(more.exitCode).toBe(4);
    expect((await simulator.books()).calls).toBe(15);
  });

  it('counts answers without a known price with the most they can be, after a resume too', async () => {
    // It says no cost, and what it answers as has no price.
    await simulator.reconfigure({ prices: null });
    expect((await run(...capped, '--max-cost', '1.00')).exitCode).toBe(4);
    expect((await simulator.books()).calls).toBe(10);
    const again = await run('resume');
    expect(again.exitCode).toBe(4);
    expect(again.stderr).toMatch(/no price for this model and tier · at most \$1\.00/);
    expect((await simulator.books()).calls).toBe(10);
  });

  it.each([408, 504])(
    'counts calls on which a gateway gave up with %i, while the server may have gone on, with the most they can be',
    async (status) => {
      await simulator.reconfigure({ outage: { fault: String(status) } });
      const flags = ['--max-cost', '1.00', '--max-attempts', '1', '--no-guard'];
      expect((await run(...capped, ...flags)).exitCode).toBe(4);
      expect((await simulator.books()).calls).toBe(10);
      const { stdout } = await workspace.run(['status']);
      expect(stdout.replace(/\s+/g, ' ')).toMatch(/up to \$1\.00 more for 10 calls cut off/);
    },
  );

  it.each(['500', '502'])('is not used up by calls that a server refused with %s', async (fault) => {
    await simulator.reconfigure({ outage: { fault } });
    const flags = ['--max-cost', '1.00', '--no-guard', '--max-wait', '1s'];
    const { exitCode, stderr } = await run(...capped, ...flags);
    expect(exitCode).toBe(4);
    expect(stderr).not.toContain('--max-cost');
    expect(await workspace.status()).toMatchObject({
      cost_usd: 0,
      in_doubt: { calls: 0, tokens: 0, cost_usd: 0 },
    });
  });

  it('counts answers that do not say what they used with the most they can be, and does not call them cut off', async () => {
    await simulator.reconfigure({ prices: null });
    const silent = numberedDocuments(50).map((each) => ({
      ...each,
      text: `[[simulate:no-usage]] ${each.text}`,
    }));
    workspace.writeDocuments('docs.jsonl', silent);
    expect((await run(...capped, '--max-cost', '1.00')).exitCode).toBe(4);
    expect((await simulator.books()).answered).toBe(10);
    const { stdout } = await workspace.run(['status']);
    expect(stdout.replace(/\s+/g, ' ')).toMatch(
      /up to \$1\.00 more for 10 calls whose answers do not say what they used/,
    );
    expect(stdout).not.toMatch(/cut off/);
    expect(await workspace.status()).toMatchObject({ in_doubt: { calls: 0, calls_without_usage: 10 } });
  });

  it('is not used up by calls that found nobody to connect to', async () => {
    const { url } = simulator;
    await simulator.stop();
    const environment = { OPENAI_BASE_URL: url };
    const first = await workspace.run(
      [...capped, '--max-cost', '1.00', '--no-guard', '--max-wait', '1s', '--prices', 'prices.json'],
      { environment },
    );
    expect(first.exitCode).toBe(4);
    expect(first.stderr).not.toMatch(/cut off/);
    expect(await workspace.status()).toMatchObject({
      documents: { failed: 0, pending: 50 },
      cost_usd: 0,
      in_doubt: { calls: 0, tokens: 0, cost_usd: 0 },
    });
  });

  it('refuses a model without a known price before any call, and does not take it for free', async () => {
    const { exitCode, stderr } = await run(...capped, '--model', 'nobody-knows-me', '--max-cost', '1');
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/no price is known for model 'nobody-knows-me'/);
    expect(stderr).toMatch(/--prices/);
    expect((await simulator.books()).calls).toBe(0);
    expect(existsSync(workspace.storePath)).toBe(false);
  });
});

it('a price file that is none is told before anything is stored', async () => {
  const { exitCode, stderr } = await workspace.run([
    'run',
    'docs.jsonl',
    '--simulate',
    '--prices',
    'none.json',
  ]);
  expect(exitCode).toBe(2);
  expect(stderr).toMatch(/none\.json does not exist/);
  expect(existsSync(workspace.storePath)).toBe(false);
});

describe('--max-tokens-total', () => {
  it('stops before the tokens of the run could pass it', async () => {
    const { exitCode } = await run(
      'run',
      'docs.jsonl',
      '--param',
      'max_tokens=1',
      '--max-tokens-total',
      '500',
    );
    expect(exitCode).toBe(4);
    const [totals] = workspace.query<{ tokens: number }>(
      'SELECT sum(input_tokens + output_tokens) AS tokens FROM lane_totals',
    );
    expect(totals?.tokens).toBeGreaterThan(0);
    expect(totals?.tokens).toBeLessThanOrEqual(500);
  });
});

describe('--max-failures', () => {
  it('stops a run in which more documents fail than the user accepts', async () => {
    await simulator.reconfigure({ errorRate: { refuse: 1 } });
    const { exitCode, stderr } = await run('run', 'docs.jsonl', '--concurrency', '1', '--max-failures', '3');
    expect(exitCode).toBe(4);
    expect(stderr).toMatch(/--max-failures/);
    const { documents } = await workspace.status();
    expect(documents['failed']).toBeGreaterThan(3);
    expect(documents['pending']).toBeGreaterThan(30);
  });

  it.each(['many', '120%', '-1'])('of %s is refused', async (value) => {
    const { exitCode, stderr } = await run('run', 'docs.jsonl', `--max-failures=${value}`);
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/a number of documents such as 100, or a share such as 5%/);
  });
});
