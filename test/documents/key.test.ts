import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isLineProblem } from '../../src/core/line-problem.js';
import { createDocumentParser } from '../../src/documents/document.js';
import { documentKey } from '../../src/documents/key.js';

function keyOf(line: unknown, idField: string | null = null): unknown {
  const text = typeof line === 'string' ? line : JSON.stringify(line);
  const document = createDocumentParser({ promptTemplate: '{{text}}', idField })(text);
  if (isLineProblem(document)) throw new Error(document.reason);
  const identity = documentKey(document, idField);
  return isLineProblem(identity) ? identity : identity.key;
}

describe("a document's key", () => {
  it.each([
    ['custom_id before id', { id: 'a', custom_id: 'b' }, 'b'],
    ['id', { id: 'a' }, 'a'],
    ['id where custom_id is null', { id: 'a', custom_id: null }, 'a'],
    ['a number as text', { id: 42 }, '42'],
    ['zero', { id: 0 }, '0'],
    ['all digits of a large number', '{"id":1234567890123456789}', '1234567890123456789'],
  ])('is %s', (_name, line, key) => {
    expect(keyOf(line)).toBe(key);
  });

  it('is the field that --id-field names, inside objects too', () => {
    expect(keyOf({ id: 'a', sku: 'b' }, 'sku')).toBe('b');
    expect(keyOf({ id: 'a', product: { sku: 7 } }, 'product.sku')).toBe('7');
    expect(keyOf({ 'product.sku': 'flat' }, 'product.sku')).toBe('flat');
  });

  it.each([
    ['an empty id', { id: '' }, null, { reason: 'the id field id is empty', field: 'id' }],
    [
      'an object',
      { id: {} },
      null,
      { reason: 'the id field id must be a string or a number, not an object', field: 'id' },
    ],
    [
      'a list',
      { custom_id: [1] },
      null,
      { reason: 'the id field custom_id must be a string or a number, not a list' },
    ],
    ['true', { id: true }, null, { reason: 'the id field id must be a string or a number, not true' }],
    ['a NUL', { id: 'a\0' }, null, { reason: 'the id field id holds a NUL character' }],
    [
      'a lack of the named field',
      { id: 'a', text: 'x' },
      'sku',
      { reason: 'the id field sku is missing; the fields are: id, text', field: 'sku' },
    ],
    ['null in the named field', { sku: null }, 'sku', { field: 'sku' }],
  ])('is refused for %s', (_name, line, idField, problem) => {
    expect(keyOf(line, idField)).toMatchObject(problem);
  });

  it('is a short hash of the content where there is no id', () => {
    expect(keyOf({ text: 'x' })).toMatch(/^sha256:[\w-]{22}$/);
    expect(keyOf({ id: null, text: 'x' })).toMatch(/^sha256:/);
  });

  it('stays the same from version to version, or finished answers would be paid for again', () => {
    expect(keyOf({ text: 'Käse', n: [1, true, null], o: { b: 2, a: 1 } })).toBe(
      'sha256:yy0dqotC5y-tBQQTzo37gU',
    );
  });

  const content = fc.dictionary(
    fc.constantFrom('text', 'a', 'b', 'c'),
    fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.array(fc.integer(), { maxLength: 2 })),
    { noNullPrototype: true },
  );

  it('is the same for the same content in other words of JSON', () => {
    fc.assert(
      fc.property(content, fc.integer(), (fields, priority) => {
        const reordered = Object.fromEntries(Object.entries(fields).reverse());
        const respelt = JSON.stringify(reordered, null, 1)
          .replaceAll('\n', ' ')
          .replaceAll('"text"', '"te\\u0078t"');
        expect(keyOf(respelt)).toBe(keyOf(fields));
        expect(keyOf({ ...fields, priority })).toBe(keyOf(fields));
      }),
    );
  });

  it('is another for other content, other metadata included', () => {
    fc.assert(
      fc.property(content, content, (one, other) => {
        const order = (fields: object) => JSON.stringify(Object.entries(fields).sort());
        expect(keyOf(one) === keyOf(other)).toBe(order(one) === order(other));
      }),
    );
    expect(keyOf({ text: 'x', metadata: 1 })).not.toBe(keyOf({ text: 'x', metadata: 2 }));
    expect(keyOf({ text: 'x', priority: 'high' })).not.toBe(keyOf({ text: 'x', priority: 'low' }));
    expect(keyOf('{"n":9007199254740992}')).not.toBe(keyOf('{"n":9007199254740993}'));
  });
});
