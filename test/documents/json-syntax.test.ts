import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeJsonError } from '../../src/documents/json-syntax.js';

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe('describeJsonError', () => {
  it.each([
    ['hello', 'expected a value at character 1, found "h"'],
    ['', 'the line ends where a value is expected'],
    ['{"a":1', 'the line ends where "," or "}" is expected'],
    ['{"a":1,}', 'expected a field name in double quotes at character 8, found "}"'],
    ['{"a":1 "b":2}', 'expected "," or "}" at character 8, found "\\""'],
    ["{'a':1}", 'expected a field name in double quotes at character 2, found "\'"'],
    ['{"a" 1}', 'expected ":" at character 6, found "1"'],
    ['{"a":}', 'expected a value at character 6, found "}"'],
    ['{"a":"b', 'the string that begins at character 6 is not closed'],
    ['{"a":"b\\"}', 'the string that begins at character 6 is not closed'],
    ['{"a":"\\x"}', 'expected an escape such as \\n or \\u00e9 at character 8, found "x"'],
    ['{"a":"b\tc"}', 'a control character in a string at character 8 must be escaped'],
    ['{"a":1}{"b":2}', 'expected the end of the line at character 8, found "{"'],
    ['[1,2', 'the line ends where "," or "]" is expected'],
    ['{"a":NaN}', 'NaN at character 6 is no JSON: write null, or leave the field out'],
    ['{"a":[-Infinity]}', '-Infinity at character 7 is no JSON: write null, or a string'],
    ['{"a":None}', 'None at character 6 is no JSON: write null'],
    ['{"a":toString}', 'expected a value at character 6, found "t"'],
    ['{"a":01}', 'expected a value at character 6, found "0"'],
    ['{"a":.5}', 'expected a value at character 6, found "."'],
    ['{"a":True}', 'True at character 6 is no JSON: write true'],
    ['{"a":😀}', 'expected a value at character 6, found "😀"'],
  ])('says of %s: %s', (text, expected) => {
    expect(describeJsonError(text)).toBe(expected);
  });

  it('bears nesting without end', () => {
    expect(describeJsonError('['.repeat(1_000_000))).toBe('the line ends where a value is expected');
  });

  it('finds an error in exactly the texts that JSON.parse refuses', () => {
    const almostJson = fc
      .tuple(
        fc.json({ maxDepth: 3 }),
        fc.nat(),
        fc.constantFrom('', '"', ',', '}', '{', '\\', '0', '-', '.', ' ', '\n', 'e'),
      )
      .map(([json, place, wrong]) => {
        const at = place % (json.length + 1);
        return json.slice(0, at) + wrong + json.slice(at + (place % 2));
      });
    fc.assert(
      fc.property(almostJson, (text) => {
        expect(describeJsonError(text) === 'it cannot be parsed').toBe(isJson(text));
      }),
      { numRuns: 2_000 },
    );
  });
});
