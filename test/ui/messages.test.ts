import { describe, expect, it } from 'vitest';
import { wayOutOf } from '../../src/commands/error-words.js';
import { LlmBatchError, usageError } from '../../src/core/errors.js';
import { renderBadLines } from '../../src/ui/bad-lines.js';
import { PLAIN_APPEARANCE } from '../../src/ui/colours.js';
import { renderError } from '../../src/ui/error.js';
import { formatImportPlan } from '../../src/ui/event-lines.js';
import { displayWidth } from '../../src/ui/width.js';

describe('an error', () => {
  it('is one line that says what was wrong and one that says what to do', () => {
    const error = usageError('X', 'reviews.jsonl does not exist.', 'check the path');
    expect(renderError(error, PLAIN_APPEARANCE, false, wayOutOf)).toEqual([
      'error: reviews.jsonl does not exist.',
      '  try: check the path',
    ]);
  });

  it('has no second line where there is nothing to do', () => {
    expect(
      renderError(new LlmBatchError('Gone.', { code: 'X', exitCode: 5 }), PLAIN_APPEARANCE, false, wayOutOf),
    ).toEqual(['error: Gone.']);
  });

  it('that nobody foresaw asks for a report, and shows its stack only under --debug', () => {
    const error = new Error('boom', { cause: new Error('the disk') });
    const brief = renderError(error, PLAIN_APPEARANCE, false, wayOutOf);
    expect(brief).toHaveLength(2);
    expect(brief[1]).toContain('--debug');
    const full = renderError(error, PLAIN_APPEARANCE, true, wayOutOf).join('\n');
    expect(full).toMatch(/Error: boom\n {4}at .*\n/);
    expect(full).toMatch(/\ncaused by Error: the disk\n {4}at /);
  });

  it('may be anything that can be thrown, and cannot steer the terminal', () => {
    expect(renderError('just text\x1b[2J', PLAIN_APPEARANCE, true, wayOutOf)[0]).toBe('error: just text�[2J');
    expect(renderError(new TypeError(''), PLAIN_APPEARANCE, false, wayOutOf)[0]).toBe('error: TypeError');
    const circle = new Error('circle');
    circle.cause = circle;
    expect(renderError(circle, PLAIN_APPEARANCE, true, wayOutOf).length).toBeGreaterThan(2);
  });
});

describe('the plan of an edited input', () => {
  it('names what there is', () => {
    expect(
      formatImportPlan({
        unchanged: 9_950,
        answeredBefore: 0,
        changedOpen: 40,
        changedFinished: 0,
        added: 10,
        gone: 3,
      }),
    ).toBe('9,950 unchanged · 40 changed · 10 new · 3 gone');
    expect(
      formatImportPlan({
        unchanged: 0,
        answeredBefore: 0,
        changedOpen: 0,
        changedFinished: 0,
        added: 10,
        gone: 0,
      }),
    ).toBe('10 new');
    expect(
      formatImportPlan({
        unchanged: 0,
        answeredBefore: 0,
        changedOpen: 0,
        changedFinished: 0,
        added: 0,
        gone: 0,
      }),
    ).toBe('no documents');
  });
});

describe('the report of bad lines', () => {
  it('gives number and reason of the first twenty and the number of all', () => {
    const bad = Array.from({ length: 25 }, (_, index) => ({ line: index * 100 + 3, reason: 'not JSON' }));
    const lines = renderBadLines(bad, 1_204, 'reviews.jsonl', { ...PLAIN_APPEARANCE, columns: 80 });
    expect(lines).toHaveLength(22);
    expect(lines.slice(0, 3)).toEqual([
      '1,204 bad lines in reviews.jsonl:',
      '  line     3  not JSON',
      '  line   103  not JSON',
    ]);
    expect(lines.at(-1)).toBe('  … and 1,184 more');
  });

  it('fits the terminal and is safe to print', () => {
    const bad = [{ line: 7, reason: `field "\x1b[2J${'名 '.repeat(80)}" is missing` }];
    const lines = renderBadLines(bad, 1, '-', { ...PLAIN_APPEARANCE, columns: 60 });
    expect(lines[0]).toBe('1 bad line in standard input:');
    for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(60);
    expect(lines.at(-1)).toMatch(/ is missing$/);
    expect(lines.join('')).not.toContain('\x1b');
  });
});
