/** The pages that are printed at the end of a run and by `status`, to the letter. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RunInspection } from '../../src/runs/inspect-run.js';
import { PLAIN_APPEARANCE } from '../../src/ui/colours.js';
import { nextCommand, shellWord } from '../../src/ui/next-command.js';
import { renderStatus } from '../../src/ui/status-page.js';
import { type RunEndReport, renderSummary } from '../../src/ui/summary-page.js';
import { displayWidth } from '../../src/ui/width.js';
import { run, summary } from './sample-run.js';

const report: RunEndReport = {
  runName: 'reviews',
  summary,
  elapsedMs: 3_841_000,
  callsMade: 300_412,
  haltReason: null,
  simulated: false,
  isTry: false,
  prices: { source: 'prices.json', date: '2026-11-01' },
  files: { results: 'reviews.results.jsonl', errors: 'reviews.errors.jsonl', rejects: null },
};

function summaryOf(change: Partial<RunEndReport>, columns = 80): string {
  return renderSummary({ ...report, ...change }, { ...PLAIN_APPEARANCE, columns }).join('\n');
}

describe('the summary', () => {
  it('says how a run ended, where its files are and what to type next', () => {
    expect(summaryOf({})).toBe(
      `■ reviews is finished, 12 of 300,000 documents failed
  completed  299,988
  failed     12 (invalid_request 8, truncated 4)
  elapsed    1 h 04 min
  calls      300,412 · 78 per second · 424 failed · 3 repeated after a crash
  tokens     45.2M in (1.2M cached) · 12.1M out
  cost       $123.40
  prices     prices.json of 2026-11-01
  latency    mean 812 ms · p50 640 ms · p95 1.9 s · p99 4.2 s
  results    reviews.results.jsonl
  errors     reviews.errors.jsonl
  next       llm-batch failures reviews`,
    );
  });

  it('of a small run says of a rehearsal that it is one, and of a real one that its price is not known', () => {
    const small = {
      ...summary,
      counts: { ...summary.counts, completed: 1, failed: 0 },
      calls: { made: 1, open: 0, failed: 0, repeated: 0, late: 0 },
      usage: { inputTokens: 42, outputTokens: 7, cachedTokens: 0, reasoningTokens: 5 },
      costMicroUsd: 0,
      callsWithoutCost: 1,
      failedByKind: {},
    };
    const files = { results: 'my reviews.results.jsonl', errors: null, rejects: 'my reviews.rejects.jsonl' };
    expect(summaryOf({ summary: small, elapsedMs: 412, callsMade: 1, simulated: false, files })).toContain(
      '  cost       not known: no price for this model and tier\n',
    );
    expect(summaryOf({ summary: small, elapsedMs: 412, callsMade: 1, simulated: true, files })).toBe(
      `✓ reviews is complete: 1 document
  completed  1
  elapsed    412 ms
  calls      1
  tokens     42 in · 7 out (5 reasoning)
  latency    mean 812 ms · p50 640 ms · p95 1.9 s · p99 4.2 s
  simulated  these answers were made up on this machine, no model was asked
  results    my reviews.results.jsonl
  bad lines  my reviews.rejects.jsonl
  next       head -n 3 'my reviews.results.jsonl'`,
    );
  });

  it('of a run that stopped by itself gives the reason and how to go on', () => {
    const counts = { ...summary.counts, ready: 1_000, delayed: 20, completed: 500, failed: 0 };
    const stopped = summaryOf({
      summary: { ...summary, counts, gone: 3, costMicroUsd: 5_000_000, callsWithoutCost: 2 },
      haltReason: 'quota_exhausted: you exceeded your quota\x1b[2J',
    });
    expect(stopped).toMatch(
      /^✗ reviews stopped, 500 of 1,520 documents done: quota_exhausted: you exceeded\nyour quota�\[2J\n/,
    );
    expect(stopped).toContain('  pending    1,020 · 20 of them wait to be tried again\n');
    expect(stopped).toContain('  gone       3 no longer in the input\n');
    expect(stopped).toContain('  cost       $5.00 · and 2 calls without a known price\n');
    expect(stopped).toMatch(/next {7}llm-batch resume reviews$/);
  });

  it.each([
    [0, 'not known: no price for this model and tier · at most $5.91'],
    [2_000_000, '$2.00 · up to $5.91 more for 600 calls without a known price'],
  ])('of calls without a known price tells once what they can have cost at most', (costMicroUsd, words) => {
    const inDoubt = { calls: 0, withoutUsage: 0, tokens: 0, costMicroUsd: 5_910_000 };
    const priceless = { ...summary, costMicroUsd, callsWithoutCost: 600, inDoubt };
    expect(summaryOf({ summary: priceless })).toContain(`  cost       ${words}\n`);
  });

  it('tells calls that were made again, and those of them whose answers came too late', () => {
    const calls = { ...summary.calls, repeated: 5, late: 2 };
    expect(summaryOf({ summary: { ...summary, calls } }, 120)).toContain(
      ' · 5 repeated after a crash · 2 of them answered too late\n',
    );
  });

  it('of a run that was interrupted or cancelled is told apart', () => {
    const open = { ...summary, counts: { ...summary.counts, ready: 5 } };
    expect(summaryOf({ summary: open })).toMatch(
      /^■ reviews was stopped, 300,000 of 300,005 documents done\n/,
    );
    const cancelled = { ...summary, counts: { ...summary.counts, cancelled: 5 } };
    expect(summaryOf({ summary: cancelled })).toMatch(
      /^■ reviews was cancelled, 300,000 of 300,005 documents done\n/,
    );
  });
});

const view: RunInspection = {
  batches: [],
  responses: [],
  run,
  summary: {
    ...summary,
    counts: { ready: 173_000, delayed: 20, in_progress: 16, completed: 126_000, failed: 12, cancelled: 0 },
  },
  owner: { pid: 4711, host: 'laptop', runName: 'reviews', sinceMs: 7_200_000 },
  nowMs: 9_900_000,
  requestsPerMinute: 1_204,
  tokensPerMinute: 412_345,
  outages: [],
  requestsPerMinuteLimit: 1_250,
  tokensPerMinuteLimit: 2_000_000,
  learntLimits: [],
  traceparent: null,
  etaMs: 3_840_000,
  groups: null,
  prices: { source: 'prices.json', date: null },
};

function statusOf(change: Partial<RunInspection>, columns = 90): string {
  return renderStatus({ ...view, ...change }, { ...PLAIN_APPEARANCE, columns }).join('\n');
}

describe('the status page', () => {
  it('tells of calls that had several documents', () => {
    const groups = { calls: 120, documents: 9_480, fewest: 10, most: 100, splits: 2 };
    expect(statusOf({ groups })).toContain('120 calls of 79 documents on average · from 10 to 100 · 2 split');
  });

  it('shows who drains a run, how far and how fast', () => {
    expect(statusOf({})).toBe(
      `reviews · running for 45 min, process 4711 on laptop
  ━━━━━━━━━━━━━━━━╸───────────────────────  42.1% of 299,048 documents
  input      /data/reviews.jsonl
  started    2 h ago
  completed  126,000
  failed     12 (invalid_request 8, truncated 4)
  pending    173,036 · 20 of them wait to be tried again
  speed      1,204 requests/min (96% of 1,250) · 412k tokens/min (21% of 2.0M)
  ETA        1 h 04 min
  calls      300,412 · 424 failed · 3 repeated after a crash
  tokens     45.2M in (1.2M cached) · 12.1M out
  cost       $123.40
  prices     prices.json
  latency    mean 812 ms · p50 640 ms · p95 1.9 s · p99 4.2 s
  files      /data/reviews.results.jsonl
             /data/reviews.errors.jsonl`,
    );
  });

  it('tells of a server that does not answer, since when and what is met', () => {
    const sinceMs = new Date(2026, 10, 29, 12, 3).getTime();
    const outages = [{ lane: 'KEY@api.test', sinceMs, message: 'Nothing accepts connections there' }];
    expect(statusOf({ outages, nowMs: sinceMs + 90_000, etaMs: null }, 120)).toContain(
      '\n  outage     KEY@api.test has not answered since 12:03, for 1 min 30 s: Nothing accepts connections there\n',
    );
  });

  it.each([
    [{ status: 'open', haltReason: 'auth: invalid key' }, 'stopped 15 min ago: auth: invalid key', 'resume'],
    [{ status: 'open' }, 'stopped 15 min ago', 'resume'],
    [{ status: 'finished' }, 'finished 15 min ago', 'resume'],
    [{ status: 'cancelled' }, 'cancelled 15 min ago', 'failures'],
    [{ status: 'importing' }, 'its import was cut off; run it again on the same input', 'resume'],
  ] as const)('of a run that is %j says so', (change, state, next) => {
    const text = statusOf({ run: { ...run, stoppedAtMs: 9_000_000, ...change }, owner: null });
    expect(text.split('\n')[0]).toBe(`reviews · ${state}`);
    expect(text).toMatch(new RegExp(`next {7}llm-batch ${next} reviews$`));
  });

  it('tells what the server has said of its limits', () => {
    const learntLimits = [
      { lane: 'A', requestsPerMinute: 500, tokensPerMinute: 200_000, requestsPerDay: null },
    ];
    expect(statusOf({ learntLimits })).toContain('  learnt     500 requests/min · 200k tokens/min\n');
  });

  it('has a line for each lane where there are several', () => {
    const usage = { inputTokens: 30_000, outputTokens: 4_000, cachedTokens: 0, reasoningTokens: 0 };
    const lane = { calls: 900, failed: 0, throttled: 0, usage, costMicroUsd: 0 };
    const lanes = [
      { ...lane, lane: 'KEY_A@api.openai.com', failed: 12, throttled: 9, costMicroUsd: 1_200_000 },
      { ...lane, lane: 'KEY_B@other\x1b[2J', calls: 1 },
    ];
    expect(statusOf({ summary: { ...view.summary, lanes } })).toContain(
      `
  lanes      KEY_A@api.openai.com: 900 calls · 12 failed · 9 of them throttled · 30.0k in
             · 4.0k out · $1.20
             KEY_B@other�[2J: 1 call · 30.0k in · 4.0k out
`,
    );
    expect(statusOf({ summary: { ...view.summary, lanes: lanes.slice(0, 1) } })).not.toContain('lanes');
  });

  it('of a run without documents has no bar', () => {
    const counts = { ready: 0, delayed: 0, in_progress: 0, completed: 0, failed: 0, cancelled: 0 };
    expect(statusOf({ summary: { ...summary, counts } })).not.toMatch(/[━─]/);
  });
});

describe('pages of a narrow terminal', () => {
  it('are no wider than it, unless a word is', () => {
    fc.assert(
      fc.property(fc.integer({ min: 20, max: 120 }), (columns) => {
        const lines = [
          ...renderSummary(
            { ...report, haltReason: 'a reason in many words', simulated: true },
            { ...PLAIN_APPEARANCE, columns },
          ),
          ...renderStatus(view, { ...PLAIN_APPEARANCE, columns }),
        ];
        for (const line of lines) {
          const value = line.slice(13);
          if (value.includes(' ')) expect(displayWidth(line)).toBeLessThanOrEqual(columns);
        }
      }),
    );
  });
});

describe('the next command', () => {
  const done = { runName: 'reviews', open: 0, failed: 0, cancelled: false, resultsPath: null };

  it('fits how the run ended', () => {
    expect(nextCommand({ ...done, open: 1, failed: 1 })).toBe('llm-batch resume reviews');
    expect(nextCommand({ ...done, failed: 1 })).toBe('llm-batch failures reviews');
    expect(nextCommand({ ...done, open: 1, failed: 1, cancelled: true })).toBe('llm-batch failures reviews');
    expect(nextCommand(done)).toBe('llm-batch results reviews -o -');
  });

  it('is quoted for the shell only where it must be', () => {
    expect(shellWord('data/reviews-2.jsonl')).toBe('data/reviews-2.jsonl');
    expect(shellWord("it's $HOME")).toBe("'it'\\''s $HOME'");
    expect(shellWord('-rf')).toBe("'-rf'");
    expect(shellWord('-')).toBe('-');
    expect(shellWord('')).toBe("''");
  });
});
