/** No pattern in the source takes for ever, or much longer than its text, over what somebody made for it. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AST, RegExpParser } from '@eslint-community/regexpp';
import { parseAst } from 'rolldown/parseAst';
import { describe, expect, it } from 'vitest';

const SOURCE = join(import.meta.dirname, '..', 'src');

interface Pattern {
  readonly file: string;
  readonly source: string;
  readonly flags: string;
}

function patternsOf(file: string): Pattern[] {
  const found: Pattern[] = [];
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    if ('regex' in node) {
      const { pattern, flags } = node.regex as { pattern: string; flags: string };
      found.push({ file, source: pattern, flags });
    }
    for (const child of Object.values(node)) visit(child);
  };
  visit(parseAst(readFileSync(join(SOURCE, file), 'utf8'), { lang: 'ts' }));
  return found;
}

const patterns = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .flatMap(patternsOf);

/** What can be repeated without an end. Small bounds are no danger, those of a page are. */
function isEndless(node: AST.Element): node is AST.Quantifier {
  return node.type === 'Quantifier' && node.max > 1_000;
}

/** The characters of ASCII and a few beyond that a part can take, anywhere in it. */
const SAMPLES = [...Array.from({ length: 128 }, (_, code) => code), 0x85, 0xa0, 0xe9, 0x2028, 0x4e2d];

function charactersOf(node: AST.Element | AST.Alternative, flags: string): Set<number> {
  switch (node.type) {
    case 'Character':
    case 'CharacterClass':
    case 'CharacterSet': {
      const one = new RegExp(`^${node.raw}$`, flags.replace(/[gy]/g, ''));
      return new Set(SAMPLES.filter((code) => one.test(String.fromCodePoint(code))));
    }
    case 'Quantifier':
      return charactersOf(node.element, flags);
    case 'Group':
    case 'CapturingGroup':
      return new Set(node.alternatives.flatMap((each) => [...charactersOf(each, flags)]));
    case 'Alternative':
      return new Set(node.elements.flatMap((each) => [...charactersOf(each, flags)]));
    case 'Backreference':
      return new Set(SAMPLES);
    default:
      return new Set();
  }
}

function canBeEmpty(node: AST.Element): boolean {
  if (node.type === 'Assertion') return true;
  if (node.type === 'Quantifier') return node.min === 0 || canBeEmpty(node.element);
  if (node.type === 'Group' || node.type === 'CapturingGroup') {
    return node.alternatives.some(({ elements }) => elements.every(canBeEmpty));
  }
  return false;
}

/** What is wrong with a pattern; null for a sound one. */
function dangerOf({ source, flags }: Pattern): string | null {
  const overlap = (one: AST.Element, other: AST.Element): boolean => {
    const characters = charactersOf(other, flags);
    return [...charactersOf(one, flags)].some((code) => characters.has(code));
  };
  const inSequence = (elements: readonly AST.Element[]): string | null => {
    for (const [index, first] of elements.entries()) {
      if (!isEndless(first)) continue;
      for (const second of elements.slice(index + 1)) {
        if (!overlap(first, second)) {
          if (canBeEmpty(second)) continue;
          break;
        }
        if (isEndless(second)) return `${first.raw} and ${second.raw} can share the same characters`;
      }
    }
    return null;
  };
  /** A search begins anew at each character of what was repeated in vain. */
  const beginsAnew = (elements: readonly AST.Element[]): string | null => {
    if (flags.includes('y') || (elements[0]?.type === 'Assertion' && elements[0].kind === 'start'))
      return null;
    for (const [index, repeated] of elements.entries()) {
      if (!isEndless(repeated)) continue;
      const mayFail = elements
        .slice(index + 1)
        .some((each) => each.type === 'Assertion' || !canBeEmpty(each));
      const canHoldStart = elements
        .slice(0, index)
        .every((each) => canBeEmpty(each) || overlap(each, repeated));
      if (mayFail && canHoldStart) return `begins anew inside ${repeated.raw}`;
    }
    return null;
  };
  const visit = (node: AST.Element, isRepeated: boolean): string | null => {
    if (isEndless(node) && isRepeated) return `${node.raw} is repeated itself`;
    if (node.type === 'Quantifier') return visit(node.element, isRepeated || isEndless(node));
    const alternatives = 'alternatives' in node ? node.alternatives : [];
    for (const alternative of alternatives) {
      if (!('elements' in alternative)) continue;
      const danger = visitAll(alternative.elements as readonly AST.Element[], isRepeated);
      if (danger !== null) return danger;
    }
    return null;
  };
  const visitAll = (elements: readonly AST.Element[], isRepeated: boolean): string | null =>
    elements.map((element) => visit(element, isRepeated)).find((danger) => danger !== null) ??
    inSequence(elements);
  const { alternatives } = new RegExpParser().parsePattern(source, 0, source.length, {
    unicode: flags.includes('u'),
    unicodeSets: flags.includes('v'),
  });
  return (
    alternatives
      .map(({ elements }) => visitAll(elements, false) ?? beginsAnew(elements))
      .find((danger) => danger !== null) ?? null
  );
}

/** Looked at one by one: each with what bounds it. */
const PATH = 'a path or a file name, of at most 4,096 bytes';
const BOUNDED: Readonly<Record<string, string>> = {
  '^(\\d+(\\.\\d+)?(ms|s|m|h|d))+$': 'a setting; and each number ends at its unit, which no digit is',
  '^(?:\\d+(?:\\.\\d+)?(?:ms|us|µs|ns|d|h|m|s))+$': 'each number ends at its unit, which no digit is',
  '\\b(?:try (?:your request )?again|retry|retrying|wait|replenished|resets?) (?:in|after|for) (?:about )?(\\d\\d:\\d\\d:\\d\\d|(?:\\d+(?:\\.\\d+)? ?(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])(?:,? and |, | )?)+)':
    'each number ends at its unit, which no digit is',
  '=+$': "the end of a key's base64, at most two",
  '0+$': 'six digits',
  '\\/+$': PATH,
  '\\uFFFD+$': PATH,
  '[*?]|\\[.+\\]|\\{.*,.*\\}': PATH,
  '\\{([^{}]*,[^{}]*)\\}': PATH,
  '\\.(?:results|errors|rejects|joined)\\.[a-z.]+$': PATH,
};

describe('the patterns of the source', () => {
  it.each([
    ['^(a+)+$', true],
    ['(?:x|y*)*z', true],
    ['^\\s*```(?:json)?\\s*\\n([\\s\\S]*?)\\n?\\s*```\\s*$', true],
    ['<title[^>]*>([^<]+)', true],
    ['<title[^<>]*>([^<]+)', false],
    ['^\\s*[[{]', false],
    ['-?\\d+(?:\\.\\d+)?(?:[eE][+-]?\\d+)?', false],
  ])('are told apart: %s', (source, isDangerous) => {
    expect(dangerOf({ file: '', source, flags: '' }) !== null).toBe(isDangerous);
  });

  it('repeat nothing that is repeated, and share no characters between two repetitions in a row', () => {
    expect(patterns.length).toBeGreaterThan(150);
    const dangerous = patterns
      .map((pattern) => ({ ...pattern, danger: dangerOf(pattern) }))
      .filter(({ source, danger }) => danger !== null && !Object.hasOwn(BOUNDED, source))
      .map(({ file, source, danger }) => `${file}: /${source}/: ${danger}`);
    expect(dangerous).toEqual([]);
  });

  it('that are excused are still there', () => {
    expect(Object.keys(BOUNDED).filter((source) => !patterns.some((each) => each.source === source))).toEqual(
      [],
    );
  });
});
