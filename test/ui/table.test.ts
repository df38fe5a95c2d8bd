import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PLAIN_APPEARANCE } from '../../src/ui/colours.js';
import { renderTable } from '../../src/ui/table.js';
import { displayWidth } from '../../src/ui/width.js';

const columns = [{ header: 'RUN' }, { header: 'DONE', align: 'right' }, { header: 'INPUT' }] as const;
const rows = [
  ['reviews', '126,012', '/data/reviews.jsonl'],
  ['映画', '3', '/data/a/path/that/is/long.jsonl'],
];

describe('a table', () => {
  it('aligns its columns, wide characters included', () => {
    expect(renderTable(columns, rows, { ...PLAIN_APPEARANCE, columns: 80 })).toEqual([
      'RUN         DONE  INPUT',
      'reviews  126,012  /data/reviews.jsonl',
      '映画           3  /data/a/path/that/is/long.jsonl',
    ]);
  });

  it('takes from its widest column what the terminal has not', () => {
    expect(renderTable(columns, rows, { ...PLAIN_APPEARANCE, columns: 32 })).toEqual([
      'RUN         DONE  INPUT',
      'reviews  126,012  /data/reviews…',
      '映画           3  /data/a/path/…',
    ]);
  });

  it('keeps its narrow columns whole when one in front of them is too wide', () => {
    const lines = renderTable(columns, [['a run with a long name', '126,012', '/data/x']], {
      ...PLAIN_APPEARANCE,
      columns: 30,
    });
    expect(lines[1]).toBe('a run with …  126,012  /data/x');
  });

  it('never has a line wider than the terminal, whatever its cells hold', () => {
    const cell = fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('a\nb', '\x1b[31m', '映画'));
    fc.assert(
      fc.property(fc.array(fc.tuple(cell, cell, cell)), fc.integer({ min: 1, max: 120 }), (body, width) => {
        const lines = renderTable(columns, body, { ...PLAIN_APPEARANCE, columns: width });
        expect(lines).toHaveLength(body.length + 1);
        for (const line of lines) {
          expect(displayWidth(line)).toBeLessThanOrEqual(width);
          expect(line).not.toContain('\n');
          expect(line).not.toContain('\x1b');
        }
      }),
    );
  });
});
