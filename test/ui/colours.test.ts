import { describe, expect, it } from 'vitest';
import { appearanceOf, inCharacterSet, isInteractive } from '../../src/ui/colours.js';

const terminal = { isTTY: true };
const pipe = { isTTY: false };

function isColoured(stream: { isTTY: boolean }, environment: Record<string, string>, flag = true): boolean {
  return appearanceOf(stream, environment, flag).colours.red('x') !== 'x';
}

describe('colour', () => {
  it.each([
    ['a terminal', true, terminal, {}, true],
    ['a pipe', false, pipe, {}, true],
    ['a dumb terminal', false, terminal, { TERM: 'dumb' }, true],
    ['a terminal under NO_COLOR', false, terminal, { NO_COLOR: '1' }, true],
    ['a terminal under an empty NO_COLOR', true, terminal, { NO_COLOR: '' }, true],
    ['a terminal under --no-color', false, terminal, {}, false],
    ['a pipe under FORCE_COLOR', true, pipe, { FORCE_COLOR: '1' }, true],
    ['a pipe under FORCE_COLOR and NO_COLOR', true, pipe, { FORCE_COLOR: '1', NO_COLOR: '1' }, true],
    ['a terminal under FORCE_COLOR=0', false, terminal, { FORCE_COLOR: '0' }, true],
    ['a pipe under FORCE_COLOR and --no-color', false, pipe, { FORCE_COLOR: '1' }, false],
  ] as const)('on %s is %s', (_name, coloured, stream, environment, flag) => {
    expect(isColoured(stream, environment, flag)).toBe(coloured);
  });
});

describe('the character set', () => {
  it.each([
    [{}, true],
    [{ LANG: 'de_DE.UTF-8' }, true],
    [{ LANG: 'C.utf8' }, true],
    [{ LANG: 'C' }, false],
    [{ LANG: 'de_DE.UTF-8', LC_ALL: 'POSIX' }, false],
    [{ TERM: 'linux', LANG: 'C.UTF-8' }, false],
  ])('under %j holds Unicode: %s', (environment, unicode) => {
    expect(appearanceOf(terminal, environment, true).unicode).toBe(unicode);
  });

  it('replaces our own signs by ASCII of the same width', () => {
    const ascii = appearanceOf(terminal, { LANG: 'C' }, false);
    expect(inCharacterSet('━╸─ · … ✓✗■–', ascii)).toBe('##- | ~ +x!-');
  });
});

describe('a bar', () => {
  it('needs a terminal that can move its cursor', () => {
    expect(isInteractive(terminal, {})).toBe(true);
    expect(isInteractive(terminal, { TERM: 'dumb' })).toBe(false);
    expect(isInteractive(pipe, {})).toBe(false);
  });
});
