/** Embeddings over the real program: every document gets its own vector, and nobody another's. */
import { readFileSync } from 'node:fs';
import { parquetReadObjects } from 'hyparquet';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { simulatedVector } from '../../src/simulator/embeddings.js';
import type { SimulatorOptions } from '../../src/simulator/options.js';
import { runInProcess } from '../support/in-process.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

interface VectorLine {
  readonly id: string;
  readonly output: unknown;
  readonly model: string;
  readonly finish_reason: string | null;
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number };
}

let workspace: Workspace;
let simulator: SimulatorHere;

beforeEach(async () => {
  workspace = new Workspace();
  await serve({});
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

async function serve(options: SimulatorOptions): Promise<void> {
  await simulator?.stop();
  simulator = await startSimulatorHere(options);
}

function run(...flags: string[]) {
  return workspace.run(['run', 'docs.jsonl', '--base-url', simulator.url, '--quiet', ...flags]);
}

function lines(): VectorLine[] {
  return workspace.readLines<VectorLine>('docs.results.jsonl');
}

const batchLine = (id: string, url: string, body: object) => ({ custom_id: id, method: 'POST', url, body });

describe('--endpoint embeddings', () => {
  it('gives each document the vector of its text, and the tokens of all add up to the bill', async () => {
    const documents = numberedDocuments(250);
    workspace.writeDocuments('docs.jsonl', documents);
    const end = await run('--endpoint', 'embeddings');
    expect(end.exitCode, end.stderr).toBe(0);
    expect(lines()).toMatchObject(
      documents.map(({ id, text }) => ({
        id,
        output: simulatedVector(text),
        model: 'simulated/text-embedding-3-small',
        finish_reason: null,
      })),
    );
    const books = await simulator.books();
    expect(books).toMatchObject({ documents: 250, repeatedAccepted: 0, completionTokens: 0 });
    const billed = lines().reduce((sum, { usage }) => sum + usage.input_tokens, 0);
    expect(billed).toBe(books.promptTokens);
  });

  it('gives them as long as asked, of the rendered prompt, by the model that is named', async () => {
    workspace.writeDocuments('docs.jsonl', [{ id: 'a', title: 'Tea', body: 'Green.' }]);
    const end = await run(
      ...['--endpoint', 'embeddings', '--prompt', '{{title}}: {{body}}'],
      ...['--param', 'dimensions=7', '--model', 'bge-m3'],
    );
    expect(end.exitCode, end.stderr).toBe(0);
    expect(lines()).toMatchObject([{ output: simulatedVector('Tea: Green.', 7), model: 'simulated/bge-m3' }]);
  });

  it('gives them their own vectors in whatever order the server answers', async () => {
    await serve({ errorRate: null });
    const documents = numberedDocuments(40).map(({ id, text }) => ({
      id,
      text: `${text} [[simulate:shuffled]]`,
    }));
    workspace.writeDocuments('docs.jsonl', documents);
    const end = await run('--endpoint', 'embeddings');
    expect(end.exitCode, end.stderr).toBe(0);
    expect(lines()).toMatchObject(documents.map(({ id, text }) => ({ id, output: simulatedVector(text) })));
  });

  it.each(['missing-index', 'unknown-index', 'doubled-index', 'empty', 'no-content'])(
    'fails the document that is answered with %s, tried again and told, and no other',
    async (fault) => {
      const documents = numberedDocuments(6);
      const bad = { id: 'bad', text: `Of no use. [[simulate:${fault}]]` };
      workspace.writeDocuments('docs.jsonl', [bad, ...documents]);
      const end = await run('--endpoint', 'embeddings', '--group-max', '1');
      expect(end.exitCode, end.stderr).toBe(3);
      expect(lines()).toMatchObject(documents.map(({ id, text }) => ({ id, output: simulatedVector(text) })));
      expect(workspace.readLines('docs.errors.jsonl')).toMatchObject([
        { id: 'bad', attempts: expect.toSatisfy((attempts) => attempts > 1), error: { kind: 'bad_output' } },
      ]);
    },
  );

  it.each([
    ['--schema', ['--schema', 'schema.json']],
    ['--json-mode', ['--json-mode']],
    ['--repair', ['--repair']],
    ['--system', ['--system', 'Be brief.']],
    ['{{image …}} in --prompt', ['--prompt', 'Of {{image photo}}']],
    ['encoding_format="base64"', ['--param', 'encoding_format=base64']],
    ['--group-max', ['--group-max', '0']],
  ])('goes with no %s, and says so before anything is read', async (told, flags) => {
    const end = await run('--endpoint', 'embeddings', ...flags);
    expect(end.exitCode).toBe(2);
    expect(end.stderr).toContain(told);
    expect((await simulator.books()).calls).toBe(0);
  });
});

describe('lines that show their endpoint', () => {
  it('go each to its own in one run', async () => {
    workspace.writeDocuments('docs.jsonl', [
      batchLine('vector', '/v1/embeddings', { model: 'own', input: 'A river.', encoding_format: 'base64' }),
      batchLine('several', '/v1/embeddings', { model: 'own', input: ['A hill.', 'A lake.'] }),
      batchLine('text', '/v1/chat/completions', { model: 'm', messages: [{ role: 'user', content: 'Hi' }] }),
    ]);
    const end = await run();
    expect(end.exitCode, end.stderr).toBe(0);
    expect(lines()).toMatchObject([
      { id: 'vector', output: simulatedVector('A river.'), finish_reason: null },
      { id: 'several', output: [simulatedVector('A hill.'), simulatedVector('A lake.')] },
      { id: 'text', output: expect.stringContaining('Simulated answer'), finish_reason: 'stop' },
    ]);
  });
});

describe('vectors in files', () => {
  const TEXT = 'This is document number 1.';

  beforeEach(async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    await run('--endpoint', 'embeddings', '--param', 'dimensions=3');
  });

  async function results(...flags: string[]): Promise<string> {
    const end = await runInProcess(['results', '-o', '-', ...flags], { folder: workspace.folder });
    expect(end.exitCode, end.stderr).toBe(0);
    return end.stdout;
  }

  it('are JSON text in CSV', async () => {
    const [, row] = (await results('--format', 'csv')).split('\n');
    expect(row).toContain(`"[${simulatedVector(TEXT, 3).join(',')}]"`);
  });

  it('are lists of numbers in Parquet', async () => {
    await runInProcess(['results', '-o', 'out.parquet'], { folder: workspace.folder });
    const bytes = readFileSync(workspace.path('out.parquet'));
    const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
    const [first] = await parquetReadObjects({ file, columns: ['output'] });
    expect(first).toEqual({ output: simulatedVector(TEXT, 3) });
  });

  it('are a body for each document in the format of the Batch API', async () => {
    const [line = ''] = (await results('--format', 'openai')).split('\n');
    expect(JSON.parse(line)).toMatchObject({
      custom_id: 'doc-1',
      response: {
        body: {
          data: [{ object: 'embedding', index: 0, embedding: simulatedVector(TEXT, 3) }],
          usage: { prompt_tokens: 7, total_tokens: 7 },
        },
      },
    });
  });
});

describe('what embeddings cost', () => {
  it('is estimated of the input alone, in as many calls as groups make', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(1_000));
    const estimate = async (...flags: string[]) => {
      const args = ['estimate', 'docs.jsonl', '--endpoint', 'embeddings', '--rpm', '10', '--json', ...flags];
      const end = await runInProcess(args, { folder: workspace.folder });
      expect(end.exitCode, end.stderr).toBe(0);
      const { models } = JSON.parse(end.stdout) as {
        models: {
          output_tokens: object;
          cost_usd: { direct: { high: number } };
          duration: { high_ms: number };
        }[];
      };
      return models[0];
    };
    const grouped = await estimate();
    expect(grouped).toMatchObject({ output_tokens: { high: 0 } });
    expect(grouped?.cost_usd.direct.high).toBeGreaterThan(0);
    expect(grouped?.duration.high_ms).toBeLessThan(60_000);
    expect((await estimate('--group-max', '1'))?.duration.high_ms).toBeGreaterThan(90 * 60_000);
  });

  it('is in a rehearsal what is estimated of one', async () => {
    workspace.writeDocuments('docs.jsonl', [
      { id: 'a', text: 'Käse' },
      { id: 'b', input: [[1, 2, 3], [4]] },
    ]);
    const args = ['estimate', 'docs.jsonl', '--endpoint', 'embeddings', '--simulate', '--json'];
    const { stdout } = await runInProcess(args, { folder: workspace.folder });
    expect((await run('--endpoint', 'embeddings')).exitCode).toBe(0);
    const { promptTokens } = await simulator.books();
    expect(JSON.parse(stdout)).toMatchObject({ models: [{ input_tokens: { total: promptTokens } }] });
  });

  it('is capped, though nobody has a price for output that there is not', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    expect((await run('--endpoint', 'embeddings', '--max-cost', '1')).exitCode).toBe(0);
    const unknown = await run(
      '--endpoint',
      'embeddings',
      '--max-cost',
      '1',
      '--model',
      'no-such',
      '--name',
      'b',
    );
    expect(unknown.exitCode).toBe(2);
    expect(unknown.stderr).toContain("no price is known for model 'no-such'");
  });
});

it('check knows what is too long for an embeddings model', async () => {
  workspace.writeDocuments('docs.jsonl', [
    { id: 'long', text: 'word '.repeat(9_000) },
    { id: 'short', text: 'x' },
  ]);
  const args = ['check', 'docs.jsonl', '--endpoint', 'embeddings', '--json'];
  const end = await runInProcess(args, { folder: workspace.folder });
  expect(JSON.parse(end.stdout)).toMatchObject({
    documents: 2,
    models: [{ model: 'text-embedding-3-small' }],
    problems: [{ kind: 'over_context', count: 1 }],
  });
});
