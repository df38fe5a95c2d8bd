/** Responses, completions and moderations over the real commands: sent, read, written and priced as each is. */
import { readFileSync } from 'node:fs';
import { parquetReadObjects } from 'hyparquet';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/core/json.js';
import { simulatedCompletion } from '../../src/simulator/completions.js';
import { simulatedModeration } from '../../src/simulator/moderations.js';
import type { SimulatorOptions } from '../../src/simulator/options.js';
import { runInProcess } from '../support/in-process.js';
import { samplePng } from '../support/sample-images.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

let workspace: Workspace;
let simulator: SimulatorHere;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorHere({ latencyMs: 1 });
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

function llmBatch(...args: readonly string[]) {
  return runInProcess(args, { folder: workspace.folder, environment: { OPENAI_BASE_URL: simulator.url } });
}

/** @returns lines of the results and the errors of a run of its own */
async function answersOf(name: string, ...flags: string[]): Promise<[JsonObject[], JsonObject[]]> {
  const end = await llmBatch('run', 'docs.jsonl', '--name', name, '--quiet', ...flags);
  expect([0, 3], end.stderr).toContain(end.exitCode);
  const errors = end.exitCode === 0 ? [] : workspace.readLines<JsonObject>(`docs.${name}.errors.jsonl`);
  return [workspace.readLines<JsonObject>(`docs.${name}.results.jsonl`), errors];
}

describe('chat and responses', () => {
  /** All but times, costs and the ids of calls. */
  function alike(lines: readonly JsonObject[]): object[] {
    return lines.map(({ latency_ms, request_id, completed_at, failed_at, cost_usd, error, ...rest }) => ({
      ...rest,
      error: typeof error === 'object' && error !== null ? { ...error, request_id: null } : null,
    }));
  }

  it.each([
    ['texts', []],
    [
      'prompts, a system text and a cap',
      ['--prompt', 'Judge: {{text}}', '--system', 'Be brief, {{id}}.', 'CAP'],
    ],
    ['a schema and its repair', ['--schema', 'schema.json', '--repair']],
    ['pictures', ['--prompt', '{{text}} {{image picture}}']],
  ])('give the same results and errors for %s', async (_what, flags) => {
    const faults = [
      'length',
      'refuse',
      'content-filter',
      'no-usage',
      '503-then-ok',
      'too-long',
      'no-content',
    ];
    workspace.write('cat.png', samplePng(64, 32));
    const properties = { label: { type: 'string' }, stars: { type: 'integer', maximum: 5 } };
    workspace.write('schema.json', JSON.stringify({ type: 'object', properties, required: ['label'] }));
    const texts = [...faults.map((fault) => `Odd. [[simulate:${fault}]]`), 'Käse', 'A smiley: 😀'];
    workspace.writeDocuments(
      'docs.jsonl',
      texts.map((text, index) => ({ id: `d${index}`, text, picture: 'cat.png' })),
    );
    const withCap = (name: string) =>
      flags.flatMap((flag) => (flag === 'CAP' ? ['--param', `${name}=20`] : [flag]));
    const [results, errors] = await answersOf('chat', ...withCap('max_tokens'));
    const before = await simulator.books();
    await simulator.stop();
    simulator = await startSimulatorHere({ latencyMs: 1 });
    const [ofResponses, errorsOfResponses] = await answersOf(
      'responses',
      ...['--endpoint', 'responses', ...withCap('max_output_tokens')],
    );
    expect(results.length).toBeGreaterThan(2);
    expect(errors.length).toBeGreaterThan(4);
    expect(alike(ofResponses)).toEqual(alike(results));
    expect(alike(errorsOfResponses)).toEqual(alike(errors));
    // The same bill, too.
    const { calls, promptTokens, completionTokens } = before;
    expect(await simulator.books()).toMatchObject({ calls, promptTokens, completionTokens });
  });
});

describe.each([
  [
    'completions',
    'prompt',
    (text: string) => simulatedCompletion(text, { model: 'gpt-3.5-turbo-instruct' }, {}).text,
  ],
  ['moderations', 'input', (text: string) => simulatedModeration(text)],
] as const)('%s', (endpoint, field, outputOf) => {
  it.each(
    endpoint === 'completions'
      ? ['shuffled', 'missing-index', 'doubled-index', 'bad-request']
      : ['missing-index', 'doubled-index', 'bad-request', 'no-content'],
  )('share calls, and each document has its own answer, beside one that meets %s', async (fault) => {
    const documents = numberedDocuments(60);
    const odd = { id: 'odd', text: `Odd. [[simulate:${fault}]]` };
    workspace.writeDocuments('docs.jsonl', [...documents, odd]);
    const [results, errors] = await answersOf('own', '--endpoint', endpoint);
    const good = fault === 'shuffled' ? [...documents, odd] : documents;
    expect(results.map(({ id, output }) => ({ id, output }))).toEqual(
      good.map(({ id, text }) => ({ id, output: outputOf(text) })),
    );
    expect(errors.map(({ id }) => id)).toEqual(fault === 'shuffled' ? [] : ['odd']);
    expect((await simulator.books()).calls).toBeLessThan(20);
  });

  it('of a line that asks for several are one document', async () => {
    const body = { model: 'gpt-3.5-turbo-instruct', [field]: ['One.', 'Two.'] };
    workspace.writeDocuments('docs.jsonl', [
      { custom_id: 'a', method: 'POST', url: `/v1/${endpoint}`, body },
    ]);
    const [results] = await answersOf('own');
    expect(results).toMatchObject([{ id: 'a', output: [outputOf('One.'), outputOf('Two.')] }]);
  });

  it('fill every format of results', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    await answersOf('own', '--endpoint', endpoint);
    const text = 'This is document number 1.';
    const written = async (...flags: string[]) => (await llmBatch('results', 'own', ...flags)).stdout;
    const [head, row] = (await written('--format', 'csv', '--csv-columns', '-o', '-')).split('\n');
    const output = outputOf(text);
    if (typeof output === 'string') expect(row).toContain(output);
    else
      expect([head?.endsWith('category_applied_input_types'), row]).toEqual([
        true,
        expect.stringContaining('"harassment""'),
      ]);
    const [line = ''] = (await written('--format', 'openai', '-o', '-')).split('\n');
    expect(JSON.parse(line).response.body).toMatchObject(
      typeof output === 'string' ? { choices: [{ index: 0, text: output }] } : { results: [output] },
    );
    await written('-o', 'own.parquet');
    const bytes = readFileSync(workspace.path('own.parquet'));
    const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
    const [first] = await parquetReadObjects({ file, columns: ['output'] });
    expect(first?.['output']).toBe(typeof output === 'string' ? output : JSON.stringify(output));
  });
});

describe('moderations', () => {
  it('cost nothing, and are in no doubt for it, under a cap as well', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    const [results] = await answersOf('free', '--endpoint', 'moderations', '--max-cost', '0.01');
    expect(results).toMatchObject([{ cost_usd: 0 }, { cost_usd: 0 }, { cost_usd: 0 }]);
    const status = JSON.parse((await llmBatch('status', 'free', '--json')).stdout);
    expect(JSON.stringify(status)).toMatch(/"calls_without_usage":0/);
    const { stdout } = await llmBatch('estimate', 'docs.jsonl', '--endpoint', 'moderations', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ models: [{ cost_usd: { direct: { high: 0 } } }] });
  });

  it('judge a picture beside its text, alone in its call', async () => {
    workspace.write('cat.png', samplePng(64, 32));
    workspace.writeDocuments('docs.jsonl', [{ id: 'a', text: 'A cat', picture: 'cat.png' }]);
    const [[result]] = await answersOf(
      'own',
      '--endpoint',
      'moderations',
      '--prompt',
      '{{text}} {{image picture}}',
    );
    expect(result?.['output']).toMatchObject({ category_applied_input_types: { hate: ['text', 'image'] } });
    const twice = ['--prompt', '{{image picture}} {{image picture}}', '--name', 'twice'];
    const end = await llmBatch('run', 'docs.jsonl', '--endpoint', 'moderations', ...twice);
    expect([end.exitCode, end.stderr]).toEqual([2, expect.stringContaining('one image a document')]);
  });
});

describe('what an endpoint has no place for', () => {
  it.each([
    ['responses', ['--param', 'max_tokens=5'], 'responses call it max_output_tokens'],
    ['responses', ['--param', 'response_format={"type":"json_object"}'], 'responses call it text.format'],
    ['completions', ['--schema', 'schema.json'], '--schema means nothing to --endpoint completions'],
    ['completions', ['--system', 'Be brief.'], '--system means nothing to --endpoint completions'],
    ['completions', ['--prompt', '{{image text}}'], '{{image …}} in --prompt means nothing'],
    ['moderations', ['--param', 'temperature=0'], 'moderations have no text to write'],
    ['moderations', ['--json-mode'], '--json-mode means nothing to --endpoint moderations'],
  ])('is told before a call: %s with %j', async (endpoint, flags, told) => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(1));
    const end = await llmBatch('run', 'docs.jsonl', '--endpoint', endpoint, ...flags);
    expect([end.exitCode, end.stderr]).toEqual([2, expect.stringContaining(told)]);
    expect((await simulator.books()).calls).toBe(0);
  });

  it('merges what is asked of the text of a response with its schema, and refuses two of them', async () => {
    workspace.write('schema.json', '{"type":"object"}');
    workspace.writeDocuments('docs.jsonl', numberedDocuments(1));
    const flags = ['--endpoint', 'responses', '--schema', 'schema.json'];
    const dry = await llmBatch(
      'run',
      'docs.jsonl',
      ...flags,
      '--param',
      'text={"verbosity":"low"}',
      '--dry-run',
    );
    expect(dry.exitCode, dry.stderr).toBe(0);
    expect(dry.stdout + dry.stderr).toMatch(/"verbosity": ?"low"[\s\S]*"json_schema"/);
    const twice = await llmBatch('run', 'docs.jsonl', ...flags, '--param', 'text={"format":{"type":"text"}}');
    expect([twice.exitCode, twice.stderr]).toEqual([2, expect.stringContaining('--param text contradicts')]);
  });
});

describe('a reasoning model that refuses a parameter', () => {
  const run = async (options: SimulatorOptions, ...flags: string[]) => {
    await simulator.reconfigure(options);
    workspace.writeDocuments('docs.jsonl', numberedDocuments(30));
    return llmBatch('run', 'docs.jsonl', '--model', 'gpt-5-mini', ...flags);
  };

  it.each([
    [['--param', 'max_tokens=50'], '--param max_completion_tokens=N in place of max_tokens'],
    [
      ['--param', 'temperature=0'],
      'leave temperature out of --param and of the documents: this model takes its own value alone',
    ],
  ])('stops the run with what to do: %j', async (flags, hint) => {
    const end = await run({}, ...flags);
    expect([end.exitCode, end.stderr]).toEqual([4, expect.stringContaining(hint)]);
  });
});
