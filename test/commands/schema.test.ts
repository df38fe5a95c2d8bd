/** Structured output over the real program: asked for, checked, tried again, repaired. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/core/json.js';
import { Workspace } from '../support/workspace.js';

const SCHEMA = {
  title: 'Sentiment of a review',
  type: 'object',
  properties: {
    sentiment: { enum: ['positive', 'negative'] },
    stars: { type: 'integer', minimum: 1, maximum: 5 },
  },
  required: ['sentiment', 'stars'],
  additionalProperties: false,
};
const FITS = '{"sentiment":"positive","stars":5}';

let workspace: Workspace;
let server: Server;
let bodies: JsonObject[];
/** What the model says, by the request and how many have come before. */
let answer: (body: JsonObject, before: number) => string;

beforeEach(async () => {
  workspace = new Workspace();
  workspace.writeDocuments('docs.jsonl', [{ id: 'a', text: 'Lovely.' }]);
  workspace.write('schema.json', JSON.stringify(SCHEMA));
  bodies = [];
  answer = () => FITS;
  server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => {
      text += chunk;
    });
    request.on('end', () => {
      const body = JSON.parse(text) as JsonObject;
      const content = answer(body, bodies.length);
      bodies.push(body);
      response.setHeader('content-type', 'application/json');
      const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content } }];
      const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
      response.end(
        JSON.stringify({ id: 'x', object: 'chat.completion', model: 'test-model', choices, usage }),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterEach(async () => {
  await new Promise((resolve) => server.close(resolve));
  workspace.remove();
});

function run(...flags: string[]) {
  const { port } = server.address() as AddressInfo;
  return workspace.run(['run', 'docs.jsonl', '--base-url', `http://127.0.0.1:${port}/v1`, ...flags]);
}

const firstLine = (name: string): JsonObject => workspace.readLines<JsonObject>(name)[0] ?? {};
const messagesOf = (body: JsonObject | undefined): unknown[] =>
  (body?.['messages'] as unknown[] | undefined) ?? [];

describe('--schema', () => {
  it('asks for the schema by its title, strictly where it allows that, and stores the answer as data', async () => {
    expect((await run('--schema', 'schema.json')).exitCode).toBe(0);
    expect(bodies[0]?.['response_format']).toEqual({
      type: 'json_schema',
      json_schema: { name: 'Sentiment_of_a_review', schema: SCHEMA, strict: true },
    });
    expect(firstLine('docs.results.jsonl')['output']).toEqual({ sentiment: 'positive', stars: 5 });
  });

  it.each([
    ['is not there', null, /^error: There is no schema \S+odd\.json\.\n {2}try: Check the path\.\n$/],
    ['is not JSON', '{', /^error: The schema \S+odd\.json is not JSON: .*\n {2}try: mend it; jq \. /],
    ['is no object', '[]', /is no JSON object\.\n {2}try: give a JSON Schema such as /],
    [
      'names a type that does not exist',
      '{"properties":{"a":{"type":"sting"}}}',
      /cannot be used: \/properties\/a\/type must be equal to one of the allowed values\.\n {2}try: mend it there/,
    ],
  ])('refuses one that %s, with what to do about it', async (_, text, said) => {
    if (text !== null) workspace.write('odd.json', text);
    const { exitCode, stderr } = await run('--schema', 'odd.json');
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(said);
    expect(bodies).toEqual([]);
  });

  it('sends a schema that strict mode would refuse as advice, and checks it all the same', async () => {
    workspace.write('schema.json', JSON.stringify({ ...SCHEMA, additionalProperties: true }));
    expect((await run('--schema', 'schema.json')).exitCode).toBe(0);
    expect(bodies[0]?.['response_format']).toMatchObject({ json_schema: { strict: false } });
  });

  it('reads JSON out of a Markdown fence, as servers without structured output write it', async () => {
    answer = () => `\`\`\`json\n${FITS}\n\`\`\``;
    expect((await run('--schema', 'schema.json')).exitCode).toBe(0);
    expect(firstLine('docs.results.jsonl')['output']).toEqual({ sentiment: 'positive', stars: 5 });
  });

  it('tries an answer that does not fit three times with the same request, then fails it and keeps the text', async () => {
    answer = () => '{"sentiment":"splendid","stars":9}';
    const { exitCode } = await run('--schema', 'schema.json');
    expect(exitCode).toBe(3);
    expect(bodies).toHaveLength(3);
    expect(bodies[2]).toEqual(bodies[0]);
    const line = firstLine('docs.errors.jsonl');
    expect(line['attempts']).toBe(3);
    expect(line['error']).toMatchObject({
      kind: 'bad_output',
      message: expect.stringMatching(/does not fit the schema: \/sentiment .*; \/stars must be <= 5/),
      partial_output: '{"sentiment":"splendid","stars":9}',
    });
  });

  it('counts what the answers that did not fit have cost', async () => {
    answer = (_body, before) => (before === 0 ? 'no JSON at all' : FITS);
    expect((await run('--schema', 'schema.json')).exitCode).toBe(0);
    const [totals] = workspace.query<{ tokens: number }>(
      'SELECT sum(input_tokens + output_tokens) AS tokens FROM lane_totals',
    );
    expect(totals?.tokens).toBe(30);
  });
});

describe('--repair', () => {
  it('shows the model its answer and what was wrong with it', async () => {
    answer = (body) => (messagesOf(body).length > 1 ? FITS : '{"sentiment":"splendid","stars":5}');
    expect((await run('--schema', 'schema.json', '--repair')).exitCode).toBe(0);
    expect(bodies).toHaveLength(2);
    const [, shown, told] = messagesOf(bodies[1]);
    expect(shown).toEqual({ role: 'assistant', content: '{"sentiment":"splendid","stars":5}' });
    expect(told).toMatchObject({
      role: 'user',
      content: expect.stringMatching(/\/sentiment must be equal to one of/),
    });
  });

  it('without anything to fit is refused', async () => {
    expect((await run('--repair')).exitCode).toBe(2);
  });
});

describe('--json-mode', () => {
  it('asks for any object and fails what is none', async () => {
    answer = () => '[1, 2]';
    const { exitCode } = await run('--json-mode', '--system', 'Answer in JSON.');
    expect(exitCode).toBe(3);
    expect(bodies[0]?.['response_format']).toEqual({ type: 'json_object' });
    expect(firstLine('docs.errors.jsonl')['error']).toMatchObject({
      message: 'The answer is JSON, but no object',
    });
  });

  it('is refused where the prompt does not say JSON, as servers would refuse it', async () => {
    const { exitCode, stderr } = await run('--json-mode', '--prompt', 'Classify {{text}}');
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/needs the word "JSON"/);
  });

  it('contradicts --schema', async () => {
    expect((await run('--json-mode', '--schema', 'schema.json')).exitCode).toBe(2);
  });
});
