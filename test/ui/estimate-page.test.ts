/** The page of `estimate` and of `run --dry-run`, to the letter. */
import { describe, expect, it } from 'vitest';
import type { EstimateReport, PlannedModel } from '../../src/runs/estimate/estimate-input.js';
import { PLAIN_APPEARANCE } from '../../src/ui/colours.js';
import { renderEstimate } from '../../src/ui/estimate-page.js';
import { displayWidth } from '../../src/ui/width.js';

const TABLE = { source: '@pydantic/genai-prices 0.1.8', date: '2026-09-23' };

const mini: PlannedModel = {
  asked: null,
  models: [
    { model: 'gpt-4o-mini', counted: 5_000, tokenizer: 'o200k_base', ownTokenizer: true, priceTable: TABLE },
  ],
  input: { total: 68_839_075, plusMinus: 444_405, document: { p50: 41, p95: 249, max: 423 } },
  output: {
    low: { total: 50_000_000, plusMinus: 0 },
    high: { total: 500_000_000, plusMinus: 0 },
    bases: ['assumed'],
    document: { low: { p50: 50, p95: 50, max: 50 }, high: { p50: 500, p95: 500, max: 500 } },
  },
  cost: {
    direct: { low: 40_325_861, high: 310_325_861, plusMinus: 66_661 },
    flex: null,
    batch: { low: 20_162_931, high: 155_162_931, plusMinus: 33_330 },
  },
  duration: {
    low: { ms: 12_000_000, heldBackBy: 'requests' },
    high: { ms: 421_875_000, heldBackBy: 'concurrency' },
  },
  dailyDuration: null,
  groupedShare: 0,
  serviceTiers: [],
  estimatedDocuments: 0,
  uncountedParts: 0,
};

const report: EstimateReport = {
  documents: 1_000_000,
  badLines: 0,
  firstBadLine: null,
  duplicates: 0,
  sharedAnswers: null,
  sampled: 5_000,
  firstRequest: {
    line: 1,
    bodyJson: '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Classify: fine"}]}',
  },
  models: [mini],
  limits: { requestsPerMinute: 5_000, tokensPerMinute: null, requestsPerDay: null, concurrency: 16 },
  assumesConcurrency: false,
  latency: { baseMs: 500, msPerOutputToken: 12.5 },
  assumesLatency: true,
  dailyDocuments: null,
  maxCostMicroUsd: null,
  simulated: false,
  prices: TABLE,
};

function page(change: Partial<EstimateReport> = {}, columns = 90): string {
  return renderEstimate({ ...report, ...change }, 'reviews.jsonl', { ...PLAIN_APPEARANCE, columns }).join(
    '\n',
  );
}

describe('the page of an estimate', () => {
  it('shows tokens, money and time, what they rest on, and the first request', () => {
    expect(page()).toBe(
      `reviews.jsonl: 1,000,000 documents, 5,000 of them counted, the totals are estimated from
these

model        input      output          direct       Batch API                 time
gpt-4o-mini  68.8M  50.0M–500M  $40.33–$310.33  $20.16–$155.16  3 h 20 min–4 d 21 h

  input      68,839,075 tokens · a document 41 (p50), 249 (p95), 423 (max)
  output     assumed: 50 to 500 tokens an answer; --output-tokens says it better
  error      input 68,394,670 to 69,283,480 tokens (± 0.65 %) in 95 of 100 samples;
             --exact counts every document
  tokenizer  o200k_base
  time       if no call fails: 5,000 requests a minute · 16 calls open; a call is assumed
             to take 500 ms and 12.5 ms a token of output (--latency says it better); held
             back by requests a minute or the number of open calls; the Batch API answers
             within 24 hours
  prices     @pydantic/genai-prices 0.1.8 of 2026-09-23 · no discount for cached input is
             assumed · the price of flex is unknown

the first request, of line 1:
  {
    "model": "gpt-4o-mini",
    "messages": [
      {
        "role": "user",
        "content": "Classify: fine"
      }
    ]
  }`,
    );
  });

  it('says at which tier requests ask to be served, as that is what direct costs', () => {
    const asking = page({ models: [{ ...mini, serviceTiers: ['flex'] }] }).replaceAll(/\s+/g, ' ');
    expect(asking).toContain('· direct at the service_tier that requests ask for: flex');
  });

  it('compares models and a daily load, and says what is not known of one', () => {
    const fast = { ms: 8_000, heldBackBy: 'concurrency' } as const;
    const slow = { ms: 100_000_000, heldBackBy: 'tokens' } as const;
    const models: PlannedModel[] = [
      { ...mini, asked: 'gpt-4o-mini', dailyDuration: { low: fast, high: fast } },
      {
        ...mini,
        asked: 'llama3.2',
        models: [
          {
            model: 'llama3.2',
            counted: 5_000,
            tokenizer: 'o200k_base',
            ownTokenizer: false,
            priceTable: null,
          },
        ],
        cost: { direct: null, flex: null, batch: null },
        dailyDuration: { low: fast, high: slow },
      },
    ];
    const shown = page({ models, dailyDocuments: 50_000, sampled: null }).split('\n');
    expect(shown).toContain('reviews.jsonl: 1,000,000 documents, all counted');
    expect(shown.slice(6, 9)).toEqual([
      '50,000 a day         a day         30 days  30 days, Batch API      time a day',
      'gpt-4o-mini   $2.02–$15.52  $60.49–$465.49      $30.24–$232.74           8.0 s',
      'llama3.2           unknown         unknown             unknown  8.0 s–1 d 04 h',
    ]);
    const text = shown.join(' ').replace(/\s+/g, ' ');
    expect(text).toContain(
      'o200k_base · not the one of llama3.2, which is not known here: 10 to 30 % off is usual',
    );
    expect(text).toContain('no price is known for llama3.2; --prices FILE can say it');
    expect(text).toContain('50,000 documents may take longer than a day under these limits with llama3.2');
    expect(text).not.toContain('in 95 of 100 samples');
  });

  it('says what else it rests on', () => {
    const text = (change: Partial<EstimateReport>): string => page(change).replace(/\s+/g, ' ');
    const withOutput = (output: Partial<PlannedModel['output']>): Partial<EstimateReport> => ({
      models: [{ ...mini, output: { ...mini.output, ...output } }],
    });
    expect(text(withOutput({ bases: ['given'] }))).toContain(
      'as --output-tokens says, within the cap of each request',
    );
    expect(text(withOutput({ bases: ['cap'] }))).toContain('at most what the requests themselves allow');
    expect(text({ simulated: true })).toContain("the simulator's rule: a token is 4 bytes");
    expect(text({ assumesConcurrency: true })).toContain('16 calls open (assumed)');
    expect(text({ assumesLatency: false, latency: { baseMs: 2_000, msPerOutputToken: 0 } })).toContain(
      'a call takes 2.0 s',
    );
    expect(text({ models: [{ ...mini, estimatedDocuments: 12 }] })).toContain(
      '12 documents with tools, a schema or images, counted by rule',
    );
    const reasoning = [{ ...mini, models: mini.models.map((each) => ({ ...each, model: 'gpt-5-mini' })) }];
    expect(text({ models: reasoning })).toContain('assumed: 300 to 3,000 with the reasoning of gpt-5-mini');
    const other = {
      model: 'gpt-4o',
      counted: 5,
      tokenizer: 'o200k_base',
      ownTokenizer: true,
      priceTable: TABLE,
    };
    const several = page({ models: [{ ...mini, models: [...mini.models, other] }] });
    expect(several).toContain('gpt-4o-mini 5,000, gpt-4o 5, of the counted documents');
    expect(several).toContain('\n2 models ');
  });

  it('cuts long texts and long requests, and disarms them', () => {
    const content = 'x'.repeat(5_000);
    const messages = Array.from({ length: 50 }, () => ({ role: 'user', content }));
    const bodyJson = JSON.stringify({ model: '\u001b[31mm', messages });
    const shown = page({ firstRequest: { line: 1_234, bodyJson } });
    expect(shown).toContain('the first request, of line 1,234:');
    expect(shown).toContain(`"${'x'.repeat(600)}… (5,000 characters)"`);
    expect(shown).not.toContain('\u001b');
    expect(shown.split('\n').length).toBeLessThan(70);
  });

  it('becomes a block a model where a table would cut figures off', () => {
    const shown = page({}, 70);
    expect(shown).toContain('\ngpt-4o-mini\n  input      68.8M\n  output     50.0M–500M\n');
    expect(shown).toContain('\n  time       3 h 20 min–4 d 21 h\n');
    expect(shown).not.toContain('…');
  });

  it('of two documents has no error to tell', () => {
    const unsure = { ...mini, input: { ...mini.input, plusMinus: Number.POSITIVE_INFINITY } };
    expect(page({ models: [unsure], sampled: 2 })).toContain('± unknown');
  });

  it.each([60, 90, 200])('is never wider than %i columns but for a single word', (columns) => {
    const head = page({ dailyDocuments: 5_000 }, columns).split('the first request')[0] ?? '';
    for (const line of head.split('\n')) {
      if (line.trim().includes(' ')) expect(displayWidth(line), line).toBeLessThanOrEqual(columns);
    }
  });
});
