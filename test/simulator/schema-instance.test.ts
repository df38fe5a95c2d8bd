import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/core/json.js';
import { schemaInstance } from '../../src/simulator/schema-instance.js';

const schemas: Readonly<Record<string, JsonObject>> = {
  object: {
    type: 'object',
    properties: {
      name: { type: 'string', maxLength: 8 },
      age: { type: 'integer', minimum: 18, maximum: 20 },
      tags: { type: 'array', items: { type: 'string' }, minItems: 2 },
    },
    required: ['name', 'age', 'tags'],
    additionalProperties: false,
  },
  enumeration: { enum: ['a', 'b', 3, null] },
  constant: { const: { deep: true } },
  choice: { anyOf: [{ type: 'string' }, { type: 'null' }] },
  reference: {
    $ref: '#/$defs/node',
    $defs: {
      node: { type: 'object', properties: { next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } } },
    },
  },
  nullable: { type: ['number', 'null'], minimum: -3, maximum: 4 },
  multiple: { type: 'number', minimum: 0, maximum: 100, multipleOf: 5 },
  flag: { type: 'boolean' },
};

describe('a simulated structured answer', () => {
  it.each(Object.entries(schemas))('fits a schema with %s, for every document', (_name, schema) => {
    const validate = new Ajv({ strict: false }).compile(schema);
    for (let document = 0; document < 50; document += 1) {
      const fingerprint = (document * 7_919).toString(16).padStart(12, '0');
      expect(validate(schemaInstance(schema, fingerprint)), JSON.stringify(validate.errors)).toBe(true);
    }
  });

  it('is the same for the same document and another for others', () => {
    const schema: JsonObject = { type: 'object', properties: { text: { type: 'string' } } };
    expect(schemaInstance(schema, 'abc')).toEqual(schemaInstance(schema, 'abc'));
    expect(schemaInstance(schema, 'abc')).not.toEqual(schemaInstance(schema, 'def'));
  });
});
