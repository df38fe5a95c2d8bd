import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canonicalText,
  type ExactJson,
  orderedText,
  parseExactJson,
  stringifyExact,
  surveyJson,
} from '../../src/core/exact-json.js';

const text = fc.string({ unit: 'grapheme', maxLength: 8 });
const anyText = fc.oneof(
  text,
  fc.constantFrom(
    '__proto__',
    '"',
    '\\',
    '\\"',
    '"\\ud8001"',
    '12345678901234567890',
    '\u{10000}',
    '\u{10000}7',
  ),
);
const value: fc.Arbitrary<ExactJson> = fc.letrec<{ value: ExactJson }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constant(null),
    fc.boolean(),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter(isWrittenAsDouble),
    fc.bigInt({ min: 2n ** 53n, max: 2n ** 80n }),
    fc.bigInt({ min: -(2n ** 80n), max: -(2n ** 53n) }),
    anyText,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(anyText, tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value;

describe('exact JSON', () => {
  it('gives back every value it has written, with all digits', () => {
    fc.assert(
      fc.property(value, (original) => {
        expect(parseExactJson(stringifyExact(original))).toEqual(original);
      }),
    );
  });

  it('agrees with JSON where no number is beyond 2^53', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (original) => {
        fc.pre(surveyJson(original as ExactJson) === 'plain');
        const json = JSON.stringify(original);
        expect(parseExactJson(json)).toEqual(JSON.parse(json));
        expect(stringifyExact(original as ExactJson)).toBe(json);
      }),
    );
  });

  it('takes integers at the edge as numbers and beyond it as bigints', () => {
    const json = '[9007199254740991,9007199254740992,-9007199254740993,1e300,123456789012345678.5]';
    expect(parseExactJson(json)).toEqual([
      9007199254740991,
      9007199254740992n,
      -9007199254740993n,
      1e300,
      123456789012345680,
    ]);
  });

  it('leaves digits inside strings alone', () => {
    const json =
      '{"card 9007199254740993":"4111111111111111 \\" 9007199254740993, \\\\","n":9007199254740993}';
    expect(parseExactJson(json)).toEqual({
      'card 9007199254740993': '4111111111111111 " 9007199254740993, \\',
      n: 9007199254740993n,
    });
  });

  it('bears a string of many megabytes', () => {
    const long = 'x"\\'.repeat(5_000_000);
    const json = `{"text":${JSON.stringify(long)},"n":9007199254740993}`;
    expect(parseExactJson(json)).toEqual({ text: long, n: 9007199254740993n });
  });

  it('keeps a field called __proto__ a field', () => {
    const parsed = parseExactJson('{"__proto__":{"n":9007199254740993}}') as object;
    expect(Object.keys(parsed)).toEqual(['__proto__']);
    expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
  });
});

describe('surveyJson', () => {
  it('finds numbers beyond 2^53 at any depth', () => {
    expect(surveyJson({ a: [1, { b: 9007199254740991 }], c: 'text' })).toBe('plain');
    expect(surveyJson({ a: [1, { b: 9007199254740992 }], c: 'text' })).toBe('unusual_numbers');
    expect(surveyJson({ a: Number.POSITIVE_INFINITY })).toBe('unusual_numbers');
  });

  it('finds nesting that recursion would not survive', () => {
    const nested = (depth: number): ExactJson =>
      JSON.parse('['.repeat(depth) + ']'.repeat(depth)) as ExactJson;
    expect(surveyJson(nested(400))).toBe('plain');
    expect(surveyJson({ big: 2 ** 60, deep: nested(100_000) })).toBe('too_deep');
  });
});

describe('canonicalText', () => {
  it('is the same for the same content in another order of fields', () => {
    fc.assert(
      fc.property(value, (original) => {
        expect(canonicalText(reversed(original))).toBe(canonicalText(original));
        expect(orderedText(parseExactJson(stringifyExact(original)))).toBe(orderedText(original));
      }),
    );
  });

  it('is another for any other content', () => {
    fc.assert(
      fc.property(value, value, (one, other) => {
        const same = stringifyExact(sorted(one)) === stringifyExact(sorted(other));
        expect(canonicalText(one) === canonicalText(other)).toBe(same);
      }),
    );
    const alike: ExactJson[] = [
      '1',
      1,
      '',
      [],
      {},
      [1, 2],
      ['1,2'],
      { a: 1 },
      { a: '1' },
      ['a', 1],
      null,
      'null',
      [null],
    ];
    expect(new Set(alike.map((each) => canonicalText(each))).size).toBe(alike.length);
  });

  it('leaves out a top-level field and none below', () => {
    expect(canonicalText({ a: { b: 1 }, b: 2 }, 'b')).toBe(canonicalText({ a: { b: 1 } }));
  });
});

describe('orderedText', () => {
  it('tells orders of fields apart', () => {
    expect(orderedText({ a: 1, b: 2 })).not.toBe(orderedText({ b: 2, a: 1 }));
  });
});

/** JSON has no negative zero, and a double that is written as a large integer comes back as one. */
function isWrittenAsDouble(number: number): boolean {
  return !Object.is(number, -0) && (Math.abs(number) < 2 ** 53 || !/^-?\d+$/.test(String(number)));
}

function mapObjects(original: ExactJson, order: (names: string[]) => string[]): ExactJson {
  if (Array.isArray(original)) return original.map((member) => mapObjects(member, order));
  if (typeof original !== 'object' || original === null) return original;
  return Object.fromEntries(
    order(Object.keys(original)).map((name) => [name, mapObjects(original[name] as ExactJson, order)]),
  );
}

function reversed(original: ExactJson): ExactJson {
  return mapObjects(original, (names) => names.reverse());
}

function sorted(original: ExactJson): ExactJson {
  return mapObjects(original, (names) => names.sort());
}
