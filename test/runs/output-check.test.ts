/** Answers come from outside: whatever one holds, checking it ends soon and says what is wrong. */
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/core/json.js';
import type { CheckOutput } from '../../src/engine/prepared-task.js';
import { createOutputCheck } from '../../src/runs/output-check.js';

const checkObject = createOutputCheck({ kind: 'json' }) as CheckOutput;

function checkSchema(schema: JsonObject): CheckOutput {
  return createOutputCheck({ kind: 'schema', schema }) as CheckOutput;
}

/** Far above what a linear check takes, far below what a backtracking one does. */
const SOON_MS = 20_000;

describe('a fence around an answer', () => {
  it.each([
    ['with a language', '```json\n{"a":1}\n```'],
    ['without one', '```\n{"a":1}\n```'],
    ['with space around it', ' \n```json \n{"a":1}\n\n```\n '],
    ['that is not there', ' {"a":1} '],
    ['that holds one line', '```json\n{"a":1}```'],
  ])('%s is no part of it', async (_what, output) => {
    expect(await checkObject(output)).toEqual({ outputJson: '{"a":1}' });
  });

  it.each([
    ['new lines', `\`\`\`json${'\n'.repeat(100_000)}x`],
    ['spaces', `\`\`\`json\n${' '.repeat(100_000)}x`],
    ['fences', '```'.repeat(100_000)],
    ['fences in lines', '```\n'.repeat(100_000)],
  ])(
    'of a hundred thousand %s is looked at once',
    async (_what, output) => {
      expect(await checkObject(output)).toEqual({ problem: expect.stringContaining('not JSON') });
    },
    SOON_MS,
  );
});

describe('an answer whose shape alone does harm', () => {
  const deepObject = `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`;
  const tree: JsonObject = { type: 'object', additionalProperties: { $ref: '#' } };

  it.each([
    ['as the JSON that was asked for', checkObject],
    ['against a schema that refers to itself', checkSchema(tree)],
  ])('by 5,000 levels is refused %s', async (_what, check) => {
    expect(await check(deepObject)).toEqual({
      problem: 'The answer cannot be used: it is nested over 500 levels deep',
    });
  });

  it('by millions of values is refused before they are made', async () => {
    expect(await checkObject(`{"a":[${'{},'.repeat(3_000_000)}{}]}`)).toEqual({
      problem: 'The answer cannot be used: it holds over 5 million values',
    });
  });

  it('is no matter of brackets inside its texts', async () => {
    const text = JSON.stringify({ text: `${'[{'.repeat(1_000)}\\"` });
    expect(await checkObject(text)).toEqual({ outputJson: text });
  });
});

describe('a schema that takes for ever over an answer', () => {
  const hostile = `${'a'.repeat(60)}!`;

  it.each<[string, JsonObject, unknown]>([
    ['by a pattern', { type: 'string', pattern: '^(a+)+$' }, hostile],
    ['by the pattern of a name', { patternProperties: { '^(a+)+$': { type: 'string' } } }, { [hostile]: 1 }],
    [
      'by comparing all with all',
      { type: 'array', uniqueItems: true },
      Array.from({ length: 60_000 }, (_, index) => ({ index })),
    ],
  ])(
    '%s is cut off, the answer is told, and the next one is checked',
    async (_what, schema, value) => {
      const check = checkSchema(schema);
      expect(await check(JSON.stringify(value))).toEqual({
        problem: 'The answer could not be checked against the schema: that took longer than 500 ms',
      });
      expect(await check('[]')).toBeDefined();
    },
    SOON_MS,
  );

  it(
    'leaves the program a turn between one answer and the next',
    async () => {
      const check = checkSchema({ type: 'string', pattern: '^(a+)+$' });
      let turns = 0;
      const timer = setInterval(() => {
        turns += 1;
      }, 0);
      await Promise.all(Array.from({ length: 4 }, () => check(JSON.stringify(hostile))));
      clearInterval(timer);
      expect(turns).toBeGreaterThanOrEqual(3);
    },
    SOON_MS,
  );
});

it('of a long answer only the first of its faults is looked for', async () => {
  const check = checkSchema({ type: 'array', items: { type: 'string' } });
  expect(await check('[1,2]')).toEqual({
    problem: 'The answer does not fit the schema: /0 must be string; /1 must be string',
  });
  expect(await check(`[${'1,'.repeat(50_000)}1]`)).toEqual({
    problem: 'The answer does not fit the schema: /0 must be string',
  });
});
