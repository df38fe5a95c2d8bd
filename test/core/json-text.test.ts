import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { firstElementText, memberText } from '../../src/core/json-text.js';

describe("a member's text", () => {
  it.each([
    ['numbers with all their digits', '{"a": 9007199254740995, "b": 1.0}', 'a', '9007199254740995'],
    ['decimals as they are written', '{"a": 9007199254740995, "b": 1.0}', 'b', '1.0'],
    ['objects with their spaces', ' { "a" : { "b" : [ 1 , { } ] } , "c":0}', 'a', '{ "b" : [ 1 , { } ] }'],
    [
      'brackets and quotes inside strings',
      '{"a":["}\\"]{",{"b":"\\\\"}],"c":2}',
      'a',
      '["}\\"]{",{"b":"\\\\"}]',
    ],
    ['what follows them', '{"a":["}\\"]{",{"b":"\\\\"}],"c":2}', 'c', '2'],
    ['the last of equal names', '{"a":1,"a":{"a":2}}', 'a', '{"a":2}'],
    ['names that are escaped', '{"\\u0061":null}', 'a', 'null'],
    ['names that JavaScript knows', '{"__proto__":[1]}', '__proto__', '[1]'],
  ])('keeps %s', (_what, json, name, text) => {
    expect(memberText(json, name)).toBe(text);
  });

  it('is null for what is not there', () => {
    expect(memberText('{"b":{"a":1}}', 'a')).toBeNull();
    expect(memberText('{}', 'a')).toBeNull();
    expect(memberText('["a","b"]', 'a')).toBeNull();
    expect(memberText('', 'a')).toBeNull();
  });

  it('is found however deep the others are nested', () => {
    const deep = `${'[{"x":'.repeat(50_000)}0${'}]'.repeat(50_000)}`;
    expect(memberText(`{"deep":${deep},"a":1}`, 'a')).toBe('1');
    expect(memberText(`{"deep":${deep},"a":1}`, 'deep')).toBe(deep);
  });

  it('says what JSON.parse says, however the object is written', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()),
        fc.nat(3),
        (object, indent) => {
          const json = JSON.stringify(object, null, indent);
          for (const [name, value] of Object.entries(JSON.parse(json) as object)) {
            expect(JSON.parse(memberText(json, name) ?? '')).toEqual(value);
          }
        },
      ),
    );
  });
});

describe("a list's first element", () => {
  it.each([
    ['[ {"a": [1]} , 2]', '{"a": [1]}'],
    ['[1.0]', '1.0'],
    ['[ ]', null],
    ['{"a":1}', null],
    ['', null],
  ])('of %s is %s', (json, text) => {
    expect(firstElementText(json)).toBe(text);
  });
});
