/** Tokens, money and time before spending: against the simulator's own count, and against sums done by hand. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runInProcess } from '../support/in-process.js';
import { startSimulatorHere } from '../support/simulator-here.js';
import { waitFor } from '../support/wait-for.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

const FIXTURES = join(import.meta.dirname, '..', '..', 'fixtures');

interface CostJson {
  readonly low: number;
  readonly high: number;
}

interface ModelJson {
  readonly model: string | null;
  readonly models: readonly {
    readonly model: string;
    readonly counted_documents: number;
    readonly tokenizer: string;
    readonly own_tokenizer: boolean;
    readonly price_source: string | null;
    readonly price_date: string | null;
  }[];
  readonly input_tokens: {
    readonly total: number;
    readonly low: number;
    readonly high: number;
    readonly document: { readonly p50: number; readonly p95: number; readonly max: number };
  };
  readonly output_tokens: { readonly basis: readonly string[]; readonly low: number; readonly high: number };
  readonly cost_usd: Readonly<Record<'direct' | 'flex' | 'batch', CostJson | null>>;
  readonly duration: { readonly low_ms: number; readonly high_ms: number; readonly held_back_by: string };
  readonly daily: {
    readonly day_cost_usd: { readonly direct: CostJson | null };
    readonly month_cost_usd: { readonly direct: CostJson | null; readonly batch: CostJson | null };
    readonly duration: { readonly high_ms: number };
  } | null;
  readonly uncounted_parts: number;
}

interface EstimateJson {
  readonly documents: number;
  readonly bad_lines: number;
  readonly repeats: number;
  readonly counted_documents: number;
  readonly exact: boolean;
  readonly models: readonly ModelJson[];
  readonly limits: Readonly<Record<string, number | null>>;
  readonly prices: { readonly source: string; readonly date: string | null };
  readonly first_request: { readonly line: number; readonly body: { readonly model: string } };
}

let workspace: Workspace;

beforeEach(() => {
  workspace = new Workspace();
});

afterEach(() => workspace.remove());

async function estimate(...args: readonly string[]): Promise<EstimateJson> {
  const end = await runInProcess(['estimate', ...args, '--json'], { folder: workspace.folder });
  if (end.exitCode !== 0) throw new Error(`estimate ended with ${end.exitCode}: ${end.stderr}`);
  return JSON.parse(end.stdout) as EstimateJson;
}

async function only(...args: readonly string[]): Promise<ModelJson> {
  const { models } = await estimate(...args);
  const [model, ...others] = models;
  if (model === undefined || others.length > 0) throw new Error(`${models.length} models`);
  return model;
}

const PROMPT = '--prompt=Classify the sentiment of this review: {{text}}';

describe('against the simulator', () => {
  it.each<[file: string, args: readonly string[]]>([
    ['reviews.jsonl', ['--prompt', 'Classify the sentiment of this review: {{text}}']],
    ['reviews.jsonl', ['--system', 'Answer with one word: positive, negative or mixed.']],
    ['requests.jsonl', []],
    ['batch-api.jsonl', []],
  ])('%s %j takes the tokens that were estimated', async (file, args) => {
    const simulator = await startSimulatorHere({ outputTokens: 16 });
    try {
      workspace.write(file, readFileSync(join(FIXTURES, file)));
      const byTokenizer = await only(file, ...args, '--output-tokens', '16');
      const byRule = await only(file, ...args, '--output-tokens', '16', '--simulate');
      const end = await workspace.run(['run', file, ...args, '--base-url', simulator.url, '--quiet']);
      expect(end.exitCode, end.stderr).toBe(0);
      const { promptTokens, completionTokens } = await simulator.books();
      const isNear = (estimated: number, counted: number): boolean =>
        Math.abs(estimated / counted - 1) < 0.05;
      // The model's own tokenizer against the simulator's rule of thumb; and that rule, written a second time.
      expect(byTokenizer.input_tokens.total).toSatisfy((tokens: number) => isNear(tokens, promptTokens));
      expect(byRule.input_tokens.total).toBe(promptTokens);
      expect(byTokenizer.input_tokens.total + byTokenizer.output_tokens.high).toSatisfy((tokens: number) =>
        isNear(tokens, promptTokens + completionTokens),
      );
    } finally {
      await simulator.stop();
    }
  });

  /** The simulator says 16 tokens, but for a JSON object it says 8: of that, only a range is true of every answer. */
  it.each<[file: string, args: readonly string[], said?: string]>([
    ...['jsonl', 'csv', 'tsv', 'parquet'].map((ending): [string, string[]] => [
      `reviews.${ending}`,
      [PROMPT],
    ]),
    ['requests.jsonl', []],
    ['batch-api.jsonl', [], '8..16'],
    ['notes/harbour.md', [PROMPT]],
    ['notes/kiln.md', [PROMPT]],
    ['notes/orchard.md', [PROMPT]],
    ['check/batch.jsonl', []],
    ['check/lengths.jsonl', []],
    ['check/records.jsonl', [PROMPT]],
    ['check/repeats.jsonl', [PROMPT]],
    ['check/requests.jsonl', []],
    ['check/table.csv', [PROMPT]],
  ])('%s %j takes in a rehearsal what is estimated of one', async (file, args, said = '16') => {
    const name = basename(file);
    workspace.write(name, readFileSync(join(FIXTURES, file)));
    const { input_tokens, output_tokens } = await only(
      name,
      ...args,
      '--simulate',
      `--output-tokens=${said}`,
    );
    const end = await workspace.run(['run', name, ...args, '--simulate', '--skip-bad-lines', '--quiet']);
    expect(end.exitCode, end.stderr).toBe(0);
    const status = await workspace.run(['status', '--json']);
    const { tokens } = JSON.parse(status.stdout) as { tokens: { input: number; output: number } };
    expect(tokens.input).toBeGreaterThan(0);
    expect(input_tokens.total).toSatisfy((total: number) => Math.abs(total / tokens.input - 1) < 0.05);
    expect(tokens.output).toBeGreaterThan(output_tokens.low * 0.95);
    expect(tokens.output).toBeLessThan(output_tokens.high * 1.05);
  });

  it('shows the very request that is then sent', async () => {
    workspace.writeDocuments('docs.jsonl', [{ id: 'a', text: 'fine', lang: 'en' }]);
    const args = ['--prompt', 'In {{lang}}: {{text}}', '--system', 'Be brief.', '--param', 'max_tokens=9'];
    const { first_request } = await estimate('docs.jsonl', ...args);
    expect(first_request).toEqual({
      line: 1,
      body: {
        model: 'gpt-4o-mini',
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'In en: fine' },
        ],
        max_tokens: 9,
      },
    });
  });
});

describe('money', () => {
  beforeEach(() => {
    workspace.write(
      'prices.json',
      JSON.stringify({
        date: '2026-11-01',
        models: {
          'our-model': { input: 0.02, output: 0.08, batch: 0.5, context_window: 8_000 },
          'gpt-4o-mini': { input: 0.15, output: 0.6, batch: 0.5 },
          'gpt-4o': { input: 2.5, output: 10, flex: 0.5, batch: 0.5 },
        },
      }),
    );
  });

  it('is tokens by their rates, unrounded until the sum', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(1_000));
    const model = await only(
      'docs.jsonl',
      '--model',
      'our-model',
      '--prices',
      'prices.json',
      '--output-tokens',
      '2',
    );
    // Thirteen tokens of input and two of output cost 0.42 micro-dollars: rounded one by one they would be free.
    const microUsd = (model.input_tokens.total * 2 + 2_000 * 8) / 100;
    expect(model.cost_usd.direct).toMatchObject({
      low: Math.round(microUsd) / 1e6,
      high: Math.round(microUsd) / 1e6,
    });
    expect(model.cost_usd.batch?.high).toBeCloseTo(microUsd / 2e6, 6);
    expect(model.models).toMatchObject([
      { price_date: '2026-11-01', own_tokenizer: false, tokenizer: 'o200k_base' },
    ]);
  });

  it('is unknown, never nothing, where no price is', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    const unknown = await only('docs.jsonl', '--model', 'llama3.2');
    expect(unknown.cost_usd).toEqual({ direct: null, flex: null, batch: null });
    const page = await runInProcess(['estimate', 'docs.jsonl', '--model', 'llama3.2'], {
      folder: workspace.folder,
    });
    expect(page.stdout).toContain('unknown');
    expect(page.stdout).not.toContain('$');
    // A price, but none for flex.
    expect((await only('docs.jsonl', '--model', 'gpt-4o-mini')).cost_usd.flex).toBeNull();
    expect((await only('docs.jsonl', '--model', 'gpt-5-mini')).cost_usd.flex).not.toBeNull();
  });

  it('is that of the way that a request asks for itself', async () => {
    const ask = { messages: [{ role: 'user', content: 'Name a river.' }] };
    const costOf = async (request: object) => {
      workspace.writeDocuments('docs.jsonl', [request]);
      return (await only('docs.jsonl', '--model', 'gpt-4o', '--prices', 'prices.json')).cost_usd;
    };
    const usual = await costOf(ask);
    const flex = await costOf({ ...ask, service_tier: 'flex' });
    expect(usual.direct).not.toEqual(usual.flex);
    expect(flex).toEqual({ direct: usual.flex, flex: usual.flex, batch: usual.batch });
    expect(await costOf({ ...ask, service_tier: 'scale' })).toEqual(usual);
    expect((await costOf({ ...ask, service_tier: 'priority' })).direct).toBeNull();
    workspace.writeDocuments('docs.jsonl', [ask]);
    const asked = ['--model', 'gpt-4o', '--prices', 'prices.json', '--param', 'service_tier=flex'];
    expect((await only('docs.jsonl', ...asked)).cost_usd.direct).toEqual(usual.flex);
  });

  it('is unknown where only the price of output is, unless there is none', async () => {
    workspace.write('prices.json', '{"models":{"reader":{"input":0.02}}}');
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    const args = ['docs.jsonl', '--model', 'reader', '--prices', 'prices.json', '--output-tokens'];
    expect((await only(...args, '1')).cost_usd.direct).toBeNull();
    expect((await only(...args, '0')).cost_usd.direct?.high).toBe(0.000001);
  });

  it('of documents that name models is the sum by model, unknown where one of them is', async () => {
    const ask = (model: string) => ({ model, messages: [{ role: 'user', content: 'Name a river.' }] });
    workspace.writeDocuments('mixed.jsonl', [ask('gpt-4o'), ask('gpt-4o-mini'), ask('gpt-4o-mini')]);
    const args = ['--prices', 'prices.json', '--output-tokens', '10'];
    const mixed = await only('mixed.jsonl', ...args);
    expect(mixed.model).toBeNull();
    expect(mixed.models.map(({ model, counted_documents }) => [model, counted_documents])).toEqual([
      ['gpt-4o-mini', 2],
      ['gpt-4o', 1],
    ]);
    const each = mixed.input_tokens.total / 3;
    const microUsd = each * (2.5 + 2 * 0.15) + 10 * (10 + 2 * 0.6);
    expect(mixed.cost_usd.direct?.high).toBe(Math.round(microUsd) / 1e6);
    expect(mixed.cost_usd.flex).toBeNull();
    workspace.writeDocuments('mixed.jsonl', [ask('gpt-4o'), ask('unheard-of')]);
    expect((await only('mixed.jsonl', ...args)).cost_usd.direct).toBeNull();
  });

  it('is told for several models side by side, whatever the documents name', async () => {
    workspace.writeDocuments('docs.jsonl', [
      { model: 'gpt-4o', messages: [{ role: 'user', content: 'Name a river.' }] },
      { text: 'Name a lake.' },
    ]);
    const { models, first_request } = await estimate(
      'docs.jsonl',
      ...['--model', 'gpt-4o-mini', '--model', 'gpt-4', '--model', 'gpt-4o-mini'],
      ...['--prices', 'prices.json', '--output-tokens', '0'],
    );
    expect(models.map(({ model }) => model)).toEqual(['gpt-4o-mini', 'gpt-4']);
    expect(models.map((each) => each.models[0]?.tokenizer)).toEqual(['o200k_base', 'cl100k_base']);
    expect(models.map((each) => each.models[0]?.counted_documents)).toEqual([2, 2]);
    const [mini] = models;
    expect(mini?.cost_usd.direct?.high).toBe(Math.round((mini?.input_tokens.total ?? 0) * 0.15) / 1e6);
    expect(first_request.body.model).toBe('gpt-4o-mini');
    // One model is what a run would take: what a document names itself goes first.
    expect((await only('docs.jsonl', '--model', 'gpt-4')).models.map(({ model }) => model)).toEqual([
      'gpt-4o',
      'gpt-4',
    ]);
  });

  it('and time of a daily load are told for a day and for thirty', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(10));
    const args = [
      '--prices',
      'prices.json',
      '--output-tokens',
      '10',
      '--latency',
      '1s',
      '--concurrency',
      '1',
    ];
    const { daily, cost_usd } = await only('docs.jsonl', ...args, '--daily', '100k');
    const day = (cost_usd.direct?.high ?? 0) * 10_000;
    expect(daily?.day_cost_usd.direct?.high).toBeCloseTo(day, 1);
    expect(daily?.month_cost_usd.direct?.high).toBeCloseTo(day * 30, 0);
    expect(daily?.month_cost_usd.batch?.high).toBeCloseTo(day * 15, 0);
    expect(daily?.duration.high_ms).toBe(100_000_000);
    const page = await runInProcess(['estimate', 'docs.jsonl', ...args, '--daily', '100k'], {
      folder: workspace.folder,
    });
    expect(page.stdout).toContain('may take longer than a day');
    expect(await only('docs.jsonl', ...args)).toMatchObject({ daily: null });
  });

  it('names the table of its prices and its date', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    const { prices, models } = await estimate('docs.jsonl');
    expect(prices.source).toMatch(/^@pydantic\/genai-prices \d/);
    expect(prices.date).toMatch(/^\d{4}-\d\d-\d\d$/);
    expect(models[0]?.models[0]).toMatchObject({ price_source: prices.source, price_date: prices.date });
    const page = await runInProcess(['estimate', 'docs.jsonl'], { folder: workspace.folder });
    expect(page.stdout).toContain(`${prices.source} of ${prices.date}`);
  });

  it('warns where --max-cost may stop the run', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(10));
    const page = async (cost: string, model: string) =>
      (
        await runInProcess(
          ['estimate', 'docs.jsonl', '--prices', 'prices.json', '--max-cost', cost, '--model', model],
          { folder: workspace.folder },
        )
      ).stdout;
    expect(await page('0.001', 'gpt-4o-mini')).toContain('--max-cost $0.0010 may stop it early');
    expect(await page('5', 'gpt-4o-mini')).not.toContain('--max-cost');
    expect(await page('5', 'unheard-of')).toContain('--max-cost needs a price');
  });
});

describe('output', () => {
  beforeEach(() => {
    const ask = (text: string) => [{ role: 'user', content: text }];
    workspace.writeDocuments('docs.jsonl', [
      { messages: ask('a'), max_tokens: 7 },
      { messages: ask('b'), max_completion_tokens: 200 },
      { messages: ask('c') },
    ]);
  });

  it.each<[args: string, low: number, high: number, basis: readonly string[]]>([
    ['', 7 + 50 + 50, 7 + 200 + 500, ['cap', 'assumed']],
    ['--output-tokens 100', 7 + 100 + 100, 7 + 100 + 100, ['given']],
    ['--output-tokens 5..300', 5 + 5 + 5, 7 + 200 + 300, ['given']],
    ['--param max_tokens=30', 7 + 50 + 30, 7 + 200 + 30, ['cap']],
    ['--model gpt-5-mini', 7 + 200 + 300, 7 + 200 + 3_000, ['cap', 'assumed']],
  ])('with `%s` is what is said, then the cap, then a range', async (args, low, high, basis) => {
    const { output_tokens } = await only('docs.jsonl', ...args.split(' ').filter((word) => word !== ''));
    expect(output_tokens).toMatchObject({ low, high, basis });
  });

  it.each(['many', '9..5', '-3', '5..', '1.5'])('that is %s is refused', async (text) => {
    const end = await runInProcess(['estimate', 'docs.jsonl', `--output-tokens=${text}`], {
      folder: workspace.folder,
    });
    expect(end).toMatchObject({ exitCode: 2, stdout: '' });
    expect(end.stderr).toContain('--output-tokens');
  });
});

describe('a large input', () => {
  it('is sampled, the true count within the interval that is told; --exact counts all of it', async () => {
    const words = ['river', 'søen', '山川', 'mountain lake', '{"a": 1}', 'Überfluss'];
    workspace.writeDocuments(
      'large.jsonl',
      Array.from({ length: 6_000 }, (_, index) => ({
        id: index,
        text: `${words[(index * 7) % 6]} `.repeat(1 + ((index * index) % 40)),
      })),
    );
    const sampled = await estimate('large.jsonl', '--output-tokens', '5');
    const exact = await estimate('large.jsonl', '--output-tokens', '5', '--exact');
    expect(sampled).toMatchObject({ documents: 6_000, counted_documents: 5_000, exact: false });
    expect(exact).toMatchObject({ documents: 6_000, counted_documents: 6_000, exact: true });
    const truth = exact.models[0]?.input_tokens;
    const guess = sampled.models[0]?.input_tokens;
    if (truth === undefined || guess === undefined) throw new Error('no model');
    expect(guess.low).toBeLessThan(truth.total);
    expect(guess.high).toBeGreaterThan(truth.total);
    expect(guess.high / guess.low).toBeLessThan(1.05);
    expect(guess.high).toBeGreaterThan(guess.low);
    expect(guess.document.max).toBe(truth.document.max);
    expect(truth.low).toBe(truth.total);
    expect(sampled.models[0]?.output_tokens).toMatchObject({ low: 30_000, high: 30_000 });
    const page = await runInProcess(['estimate', 'large.jsonl'], { folder: workspace.folder });
    expect(page.stdout).toContain('6,000 documents, 5,000 of them counted');
    expect(page.stdout).toMatch(/± 0\.\d\d %\) in 95 of 100 samples/);
  });

  it('stops at Ctrl-C', async () => {
    const program = workspace.start(['estimate', '-'], { keepStdinOpen: true });
    program.child.stdin?.write('{"text":"a"}\n');
    await waitFor('the progress line', () => program.stderr().includes('reading'));
    program.kill('SIGINT');
    expect(await program.ended).toMatchObject({ exitCode: 130, stdout: '' });
  });
});

describe('time', () => {
  beforeEach(() => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(1_000));
  });

  it.each<[args: string, seconds: number, heldBackBy: string]>([
    ['--latency 2s --concurrency 10', 200, 'concurrency'],
    ['--latency 2s --concurrency auto', 125, 'concurrency'],
    ['--latency 2s --concurrency 10 --group-url /batch', 2, 'concurrency'],
    ['--latency 1s --rpm 300', 180 + 6.25, 'requests'],
    ['--latency 1s --rpm 100 --api-key-env ONE,TWO,THREE', 180 + 6.25, 'requests'],
    ['--latency 1s --rpd 400', 2 * 86_400 + 12.5, 'requests_per_day'],
  ])('under %s', async (args, seconds, heldBackBy) => {
    const { duration } = await only('docs.jsonl', '--output-tokens', '10', ...args.split(' '));
    expect(duration).toMatchObject({ high_ms: seconds * 1_000, held_back_by: heldBackBy });
  });

  it('without --latency is assumed to grow with the answer, and that is said', async () => {
    const { duration } = await only('docs.jsonl', '--output-tokens', '40..120', '--concurrency', '10');
    expect(duration).toMatchObject({ low_ms: 100_000, high_ms: 200_000 });
    const page = await runInProcess(['estimate', 'docs.jsonl'], { folder: workspace.folder });
    expect(page.stdout.replace(/\s+/g, ' ')).toContain(
      'assumed to take 500 ms and 12.5 ms a token of output',
    );
  });
});

describe('the command', () => {
  it('calls nobody, needs no key and leaves nothing behind', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    const end = await workspace.run(['estimate', 'docs.jsonl', '--base-url', 'http://127.0.0.1:1/v1']);
    expect(end.exitCode, end.stderr).toBe(0);
    expect(withoutProgress(end.stderr)).toBe('');
    expect(readdirSync(workspace.folder)).toEqual(['docs.jsonl']);
  });

  it('tells of bad lines and repeats, and leaves out the former', async () => {
    workspace.write('docs.jsonl', '{"id":1,"text":"a"}\nnope\n{"id":1,"text":"a"}\n');
    expect(await estimate('docs.jsonl')).toMatchObject({ documents: 2, bad_lines: 1, repeats: 1 });
    const page = await runInProcess(['estimate', 'docs.jsonl'], { folder: workspace.folder });
    expect(page.stdout).toContain('1 bad line would stop a run');
    expect(page.stdout).toContain('line 2: not JSON');
    expect(page.stdout).toContain('1 repeat of earlier documents would be sent and paid for too');
    workspace.write('bad.jsonl', 'nope\nno\n');
    const none = await runInProcess(['estimate', 'bad.jsonl'], { folder: workspace.folder });
    expect(none).toMatchObject({ exitCode: 2, stdout: '' });
    expect(none.stderr).toContain('no document that could be sent. Line 1 is bad: not JSON');
  });

  it('tells of what cannot be counted', async () => {
    const audio = { type: 'input_audio', input_audio: { data: '', format: 'wav' } };
    workspace.writeDocuments('docs.jsonl', [{ messages: [{ role: 'user', content: [audio] }] }]);
    expect(await only('docs.jsonl')).toMatchObject({ uncounted_parts: 1 });
    const page = await runInProcess(['estimate', 'docs.jsonl'], { folder: workspace.folder });
    expect(page.stdout).toContain('1 part (audio, PDFs, other files) cannot be counted');
  });

  it.each([
    ['--latency', 'soon'],
    ['--daily', 'often'],
    ['--daily', '0'],
  ])('refuses %s %s', async (flag, value) => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    const end = await runInProcess(['estimate', 'docs.jsonl', flag, value], { folder: workspace.folder });
    expect(end).toMatchObject({ exitCode: 2, stdout: '' });
    expect(end.stderr).toContain(flag);
  });
});

describe('run --dry-run', () => {
  it('estimates the run that it does not start', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    const end = await workspace.run(['run', 'docs.jsonl', '--dry-run', '--rpm', '60', '-o', 'answers.jsonl']);
    expect(end.exitCode, end.stderr).toBe(0);
    expect(end.stdout).toContain('docs.jsonl: 3 documents, all counted');
    expect(end.stdout).toContain('This is document number 1.');
    expect(withoutProgress(end.stderr)).toBe('dry run: nothing was sent or stored\n');
    expect(readdirSync(workspace.folder)).toEqual(['docs.jsonl']);
  });

  it('ends with 2 where bad lines would stop the run, unless they are skipped', async () => {
    workspace.write('docs.jsonl', '{"text":"a"}\nnope\n');
    const end = await runInProcess(['run', 'docs.jsonl', '--dry-run'], { folder: workspace.folder });
    expect(end.exitCode).toBe(2);
    expect(end.stderr).toContain('1 bad line would stop this run before its first call');
    const skipping = await runInProcess(['run', 'docs.jsonl', '--dry-run', '--skip-bad-lines'], {
      folder: workspace.folder,
    });
    expect(skipping.exitCode).toBe(0);
    expect(readdirSync(workspace.folder)).toEqual(['docs.jsonl']);
  });

  it('tells what an earlier run of the input has answered already, and changes nothing of it', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    expect((await workspace.run(['run', 'docs.jsonl', '--simulate', '--quiet'])).exitCode).toBe(0);
    const before = workspace.query('SELECT * FROM runs');
    const end = await workspace.run(['run', 'docs.jsonl', '--simulate', '--dry-run']);
    expect(end.exitCode, end.stderr).toBe(0);
    expect(end.stderr).toContain("run 'docs-simulated', where 3 of 3 documents are done");
    expect(end.stdout).toContain("the simulator's rule");
    expect(workspace.query('SELECT * FROM runs')).toEqual(before);
  });
});

describe('with --dedupe', () => {
  const documents = (texts: readonly string[]) => texts.map((text, index) => ({ id: String(index), text }));

  beforeEach(() => {
    workspace.writeDocuments(
      'repeats.jsonl',
      documents(['one', 'two words', 'one', 'one', 'three short words']),
    );
    workspace.writeDocuments('distinct.jsonl', documents(['one', 'two words', 'three short words']));
  });

  it.each([['--exact'], ['--daily', '5']])('equal requests count once (%s)', async (...flags) => {
    const whole = await estimate('repeats.jsonl', '--dedupe', ...flags);
    const distinct = await estimate('distinct.jsonl', ...flags);
    expect(whole).toMatchObject({ documents: 5, counted_documents: 3, shared_answers: 2 });
    const [{ input_tokens, cost_usd, duration, daily }] = whole.models as [ModelJson];
    const [expected] = distinct.models as [ModelJson];
    expect(input_tokens).toEqual(expected.input_tokens);
    expect(cost_usd).toEqual(expected.cost_usd);
    expect(duration).toEqual(expected.duration);
    // Five a day, of which two are shared, cost what these five do.
    if (daily !== null) expect(daily.day_cost_usd.direct?.high).toBeCloseTo(cost_usd.direct?.high ?? 0, 9);
  });

  it('a dry run says so, and without it that repeats are paid for', async () => {
    const run = (...args: string[]) =>
      runInProcess(['run', 'repeats.jsonl', '--dry-run', '--simulate', ...args], {
        folder: workspace.folder,
      });
    expect((await run('--dedupe')).stdout).toContain(
      '2 documents would take the answer of an equal one, for nothing',
    );
    expect((await run()).stdout).not.toContain('equal one');
  });
});

/** How far the reading is, is told where it takes longer than a moment. */
function withoutProgress(stderr: string): string {
  return stderr.replace(/^reading .*\n/gm, '');
}
