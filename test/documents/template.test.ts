import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LlmBatchError } from '../../src/core/errors.js';
import type { ExactObject } from '../../src/core/exact-json.js';
import { compileTemplate, compileTextTemplate } from '../../src/documents/template.js';

function render(template: string, document: ExactObject): unknown {
  return compileTemplate(template, '--prompt').render(document);
}

describe('a template', () => {
  it('puts in strings as they are and everything else as JSON text', () => {
    const document = {
      text: 'a "b"\n',
      stars: 4,
      ok: true,
      none: null,
      tags: ['x', 1],
      shop: { city: 'Köln' },
    };
    expect(render('{{text}}|{{stars}}|{{ok}}|{{none}}|{{tags}}|{{shop}}', document)).toBe(
      'a "b"\n|4|true|null|["x",1]|{"city":"Köln"}',
    );
  });

  it('keeps every digit of an integer beyond 2^53', () => {
    const document = { id: 9007199254740993n, all: [1, 9007199254740993n] };
    expect(render('{{id}} {{all}} {{all.1}}', document)).toBe(
      '9007199254740993 [1,9007199254740993] 9007199254740993',
    );
  });

  it('reaches into objects and lists', () => {
    expect(
      render('{{a.b.c}}, {{items.1}}, {{items.0.name}}', {
        a: { b: { c: 'deep' } },
        items: [{ name: 'first' }, 2],
      }),
    ).toBe('deep, 2, first');
  });

  it('prefers a field whose own name has the dot', () => {
    expect(render('{{a.b}}', { 'a.b': 'flat', a: { b: 'nested' } })).toBe('flat');
  });

  it('takes names with spaces, other scripts and spaces around', () => {
    expect(render('{{ Review Text }}/{{評価}}', { 'Review Text': 'good', 評価: '良い' })).toBe('good/良い');
  });

  it('puts in the default where a field is missing, null or empty', () => {
    const template = '{{a|default:"none"}} {{ b.c | default: \'no "c"\' }} {{n|default:""}}!';
    expect(render(template, { a: 'x', b: { c: 1 }, n: 'y' })).toBe('x 1 y!');
    expect(render(template, { a: ' ', b: null, n: null })).toBe('none no "c" !');
    expect(compileTemplate(template, 'prompt').fields).toEqual(['a', 'b.c', 'n']);
    expect(() => render('{{a|upper}}', { a: 'x' })).toThrow(/no field name/);
  });

  it('puts in the whole document', () => {
    const document = { id: 1, tags: ['a'], big: 9007199254740993n };
    expect(render('Judge: {{.}}', document)).toBe('Judge: {"id":1,"tags":["a"],"big":9007199254740993}');
    expect(render('{{.}}', { '.': 'dot' })).toBe('dot');
  });

  it('knows which field has nothing to put in', () => {
    const { emptyFieldOf } = compileTemplate('{{a}} {{b.c}} {{d|default:"x"}} {{.}} {{image e}}', 'prompt');
    expect(emptyFieldOf({ a: 'x', b: { c: 0 }, d: '' })).toBeNull();
    expect(emptyFieldOf({ a: ' ', b: { c: 1 } })).toBe('a');
    expect(emptyFieldOf({ a: 'x', b: { c: null } })).toBe('b.c');
  });

  it('names the missing field and the fields there are', () => {
    expect(render('{{txt}}', { id: 1, text: 'x' })).toEqual({
      reason: "the template's field txt is missing; the fields are: id, text",
      field: 'txt',
    });
    expect(render('{{a.b.c}}', { a: { b: 'text' } })).toMatchObject({ field: 'a.b.c' });
    expect(render('{{items.2}}', { items: [1, 2] })).toMatchObject({ field: 'items.2' });
  });

  it('keeps that message short for a document with very many or very long names', () => {
    const document = Object.fromEntries(
      Array.from({ length: 500 }, (_, index) => [`${'n'.repeat(200)}${index}`, 1]),
    );
    const { reason } = render('{{x}}', document) as { reason: string };
    expect(reason.length).toBeLessThan(1_000);
    expect(reason).toContain('and 488 more');
  });

  it.each(['__proto__', 'constructor', 'toString', 'a.constructor', 'items.length', 'text.length', 'text.0'])(
    'finds nothing that the document does not hold itself: %s',
    (field) => {
      expect(render(`{{${field}}}`, { a: {}, items: [], text: 'abc' })).toMatchObject({ field });
    },
  );

  it('finds a field called __proto__ that the document does hold', () => {
    expect(render('{{__proto__}}', JSON.parse('{"__proto__":"mine"}') as ExactObject)).toBe('mine');
  });

  it('takes single braces, closing braces and triple braces for the text they are', () => {
    expect(render('{"a": {{a}}, "b": {"c": {}}} }} {{{a}}}', { a: 1 })).toBe(
      '{"a": 1, "b": {"c": {}}} }} {1}',
    );
  });

  it('writes two braces for an escaped pair', () => {
    expect(render('\\{{a}} is {{a}}', { a: 1 })).toBe('{{a}} is 1');
  });

  it('drops a byte order mark at the start', () => {
    expect(render('\ufeffSay {{a}}', { a: 1 })).toBe('Say 1');
  });

  it('lists its fields once each', () => {
    expect(compileTemplate('{{b}} {{a}} {{b}}', '--prompt').fields).toEqual(['b', 'a']);
  });

  it.each([
    ['never closed', 'Say {{text', /--prompt .*does not close it: "\{\{text"/],
    ['closed once', 'Say {{text}', /does not close it/],
    ['empty', 'Say {{ }}', /without a field name/],
    ['a section', '{{#each items}}', /no field name/],
    ['a filter', '{{ text | upper }}', /no field name/],
    ['JSON', '{{"a":1}}', /no field name/],
  ])('refuses braces that are %s', (_name, template, message) => {
    expect.assertions(3);
    try {
      compileTemplate(template, '--prompt');
    } catch (error) {
      expect(error).toBeInstanceOf(LlmBatchError);
      expect(error).toMatchObject({ code: 'TEMPLATE_SYNTAX', exitCode: 2 });
      expect((error as Error).message).toMatch(message);
    }
  });

  it('is cut where it names images, in its own order, with the value of the field', () => {
    const document = { name: 'Ann', photo: 'a.png', more: ['b.png', 'c.png'], shop: { logo: 'd.png' } };
    expect(
      render('For {{name}}: {{image photo}} and {{ image  more }}{{image shop.logo}}.', document),
    ).toEqual([
      'For Ann: ',
      { imageField: 'photo', value: 'a.png' },
      ' and ',
      { imageField: 'more', value: ['b.png', 'c.png'] },
      '',
      { imageField: 'shop.logo', value: 'd.png' },
      '.',
    ]);
  });

  it('means a field whose own name begins with image, where the document has one', () => {
    expect(render('{{image photo}}!', { 'image photo': 'a text', photo: 'a.png' })).toBe('a text!');
    expect(render('{{image a.b}}', { 'image a': { b: 'nested' }, a: { b: 'a.png' } })).toBe('nested');
    expect(render('{{image}} {{imagephoto}}', { image: 1, imagephoto: 2 })).toBe('1 2');
  });

  it('names the field of an image that is missing, and lists it among its own', () => {
    expect(render('{{image photo}}', { id: 1 })).toEqual({
      reason: "the template's field photo is missing; the fields are: id",
      field: 'photo',
    });
    expect(compileTemplate('{{image photo}} {{photo}} {{a}}', '--prompt').fields).toEqual(['photo', 'a']);
  });

  it('of text alone refuses images and renders everything else as any other does', () => {
    expect(compileTextTemplate('For {{name}}', '--system').render({ name: 'Ann' })).toBe('For Ann');
    expect(() => compileTextTemplate('{{image photo}}', '--system')).toThrow(
      expect.objectContaining({ code: 'TEMPLATE_SYNTAX', exitCode: 2 }),
    );
  });

  const fieldName = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 6 })
    .filter((name) => name.trim() === name && !/[{}|".]|^[#/>!&^]/.test(name));
  const literal = fc
    .string({ unit: 'grapheme', maxLength: 10 })
    .filter((piece) => !/[{\\\ufeff]/.test(piece));

  it('is its literals with the values between them, whatever the values hold', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(fieldName, fc.string({ unit: 'binary' }), literal), {
          selector: ([name]) => name,
          maxLength: 5,
        }),
        literal,
        (pieces, end) => {
          const template = pieces.map(([name, , before]) => `${before}{{${name}}}`).join('') + end;
          const document = Object.fromEntries(pieces.map(([name, value]) => [name, value]));
          const rendered = pieces.map(([, value, before]) => before + value).join('') + end;
          expect(render(template, document)).toBe(rendered);
          // An image behind it takes nothing from the text.
          expect(render(`${template}{{image photo}}`, { ...document, photo: 'a.png' })).toEqual([
            rendered,
            { imageField: 'photo', value: 'a.png' },
            '',
          ]);
        },
      ),
    );
  });
});
