import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { disarmed, printable } from '../../src/core/foreign-text.js';
import { displayWidth, padToWidth, truncateToWidth, wrapToWidth } from '../../src/ui/width.js';

describe('the width of text', () => {
  it.each([
    ['', 0],
    ['plain', 5],
    ['über', 4],
    ['e\u0301', 1],
    ['映画', 4],
    ['한국어', 6],
    ['ｱｲｳ', 3],
    ['Ｆｕｌｌ', 8],
    ['👍', 2],
    ['👩‍👩‍👧‍👦', 2],
    ['🇩🇪', 2],
    ['❤️', 2],
    ['━━─', 3],
    ['a\u200bb', 2],
  ])('of %j is %i columns', (text, width) => expect(displayWidth(text)).toBe(width));

  it('is kept to when text is cut, and a wide character is never halved', () => {
    expect(truncateToWidth('映画レビュー', 5)).toBe('映画…');
    expect(truncateToWidth('映画レビュー', 4)).toBe('映…');
    expect(truncateToWidth('short', 5)).toBe('short');
    expect(truncateToWidth('anything', 0)).toBe('');
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat({ max: 30 }), (text, columns) => {
        const cut = truncateToWidth(text, columns);
        expect(displayWidth(cut)).toBeLessThanOrEqual(columns);
        if (displayWidth(text) <= columns) expect(cut).toBe(columns === 0 ? '' : text);
      }),
    );
  });

  it('counts when text is padded', () => {
    expect(padToWidth('映', 4)).toBe('映  ');
    expect(padToWidth('7', 3, 'start')).toBe('  7');
    expect(padToWidth('long', 2)).toBe('long');
  });
});

describe('wrapped text', () => {
  it('breaks at spaces and leaves a word that is too long whole', () => {
    expect(wrapToWidth('one two three', 7)).toEqual(['one two', 'three']);
    expect(wrapToWidth('see /a/very/long/path now', 8)).toEqual(['see', '/a/very/long/path', 'now']);
    expect(wrapToWidth('', 8)).toEqual(['']);
  });

  it('has its commands whole, and its colours count for nothing', () => {
    expect(wrapToWidth('see `llm-batch resume` for it', 12)).toEqual(['see', '`llm-batch resume`', 'for it']);
    expect(wrapToWidth('\x1b[33mone two\x1b[39m', 7)).toEqual(['\x1b[33mone two\x1b[39m']);
  });

  it('loses no word, and no line is too wide unless one word is', () => {
    fc.assert(
      fc.property(
        fc.array(fc.stringMatching(/^[a-z映]{1,9}$/)),
        fc.integer({ min: 1, max: 40 }),
        (words, columns) => {
          const lines = wrapToWidth(words.join(' '), columns);
          expect(lines.join(' ')).toBe(words.join(' '));
          for (const line of lines)
            if (line.includes(' ')) expect(displayWidth(line)).toBeLessThanOrEqual(columns);
        },
      ),
    );
  });
});

describe('foreign text', () => {
  it('cannot steer the terminal', () => {
    expect(printable('red \x1b[31m\r\nnext\tcell \u202egnp.exe \x9b2J')).toBe(
      'red �[31m next cell �gnp.exe �2J',
    );
    expect(disarmed('one\r\ntwo\x1b[2J')).toBe('one\ntwo�[2J');
  });
});
