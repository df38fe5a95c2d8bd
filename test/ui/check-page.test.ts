/** The page of `check`, to the letter. */
import { describe, expect, it } from 'vitest';
import type { CheckReport } from '../../src/runs/check/check-input.js';
import { FINDING_KINDS } from '../../src/runs/check/findings.js';
import { renderCheck } from '../../src/ui/check-page.js';
import { PLAIN_APPEARANCE } from '../../src/ui/colours.js';
import { FINDING_WORDS } from '../../src/ui/finding-words.js';
import { displayWidth } from '../../src/ui/width.js';

const report: CheckReport = {
  lines: 12_400,
  documents: 12_396,
  badLines: 3,
  models: [
    { model: 'gpt-4o-mini', documents: 12_395, contextWindowTokens: 128_000, maxOutputTokens: 16_384 },
    { model: 'our-model', documents: 1, contextWindowTokens: null, maxOutputTokens: null },
  ],
  findings: [
    {
      kind: 'not_json',
      severity: 'error',
      count: 1_203,
      examples: [
        { line: 7, id: null, message: 'not JSON: expected a value at character 1, found "t"' },
        { line: 1_200, id: null, message: 'nested too deeply' },
      ],
    },
    {
      kind: 'over_context',
      severity: 'error',
      count: 1,
      examples: [{ line: 9, id: 'a', message: '130,412 tokens, where gpt-4o-mini takes 128,000' }],
    },
    {
      kind: 'batch_lines',
      severity: 'warning',
      count: 1,
      examples: [{ line: null, id: null, message: '50,001 lines, where 50,000 are taken' }],
    },
  ],
};

function page(change: Partial<CheckReport> = {}, columns = 80): string {
  return renderCheck({ ...report, ...change }, 'reviews.jsonl', { ...PLAIN_APPEARANCE, columns }).join('\n');
}

describe('the page of a check', () => {
  it('shows each kind with its first lines and the way out, and what a run would do', () => {
    expect(page()).toBe(
      `reviews.jsonl: 12,400 lines, 12,396 documents
the context window of our-model is not known: whether its documents fit was not
checked

✗ 1,203 lines are not JSON
    line 7      not JSON: expected a value at character 1, found "t"
    line 1,200  nested too deeply
    … and 1,201 more
  try: mend them; jq -c . writes one object a line

✗ 1 document is longer than its model takes
    line 9  a: 130,412 tokens, where gpt-4o-mini takes 128,000
  try: split or shorten them, or choose a --model with a larger context window

■ 1 file has more lines than the Batch API takes
    50,001 lines, where 50,000 are taken
  try: split it for the Batch API: split -l 50000; a direct run takes any number

✗ 1,204 errors, 1 warning: a run would stop before its first call; with
--skip-bad-lines it would send 12,396 documents`,
    );
  });

  it.each([
    [{ badLines: 0 }, '✗ 1,204 errors, 1 warning: a run would send 12,396 documents and some would fail'],
    [
      { badLines: 0, findings: report.findings.slice(2) },
      '✓ 1 warning: a run would send all 12,396 documents',
    ],
    [{ badLines: 0, findings: [] }, '✓ no problem found: a run would send all 12,396 documents'],
  ])('ends with %j', (change, verdict) => {
    expect(page(change, 100).split('\n').at(-1)).toBe(verdict);
  });

  it('disarms what the input holds', () => {
    const message = 'red \u001b[31m and\nanother line';
    const examples = [{ line: 1, id: '\u001b]0;title\u0007', message }];
    const shown = page({ findings: [{ kind: 'unusable_id', severity: 'error', count: 1, examples }] });
    expect(shown).toContain('line 1  �]0;title�: red �[31m and another line');
  });

  it.each([40, 80, 200])('is never wider than %i columns but for a single word', (columns) => {
    const long = { ...report, findings: report.findings.map((each) => ({ ...each, count: 99 })) };
    for (const line of page(long, columns).split('\n')) {
      const words = line.trim().split(' ');
      if (words.length > 1) expect(displayWidth(line), line).toBeLessThanOrEqual(columns);
    }
  });

  it('has words and advice for every kind, which fit on a line', () => {
    for (const kind of FINDING_KINDS) {
      const { one, many, advice } = FINDING_WORDS[kind];
      expect(many).not.toBe(one);
      expect(`✗ 1,000,000 ${many}`.length, kind).toBeLessThanOrEqual(80);
      expect(advice, kind).toMatch(/^[^A-Z\s].*[^.]$/);
    }
  });
});
