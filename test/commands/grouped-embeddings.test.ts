/** Several documents in a call: whatever becomes of the call, each gets its own vector, and its share of the bill. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { simulatedVector } from '../../src/simulator/embeddings.js';
import type { SimulatorOptions } from '../../src/simulator/options.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

interface Line {
  readonly id: string;
  readonly output: unknown;
  readonly usage: { readonly input_tokens: number };
  readonly cost_usd: number | null;
  readonly request_id: string;
}

let workspace: Workspace;
let simulator: SimulatorHere;

beforeEach(() => {
  workspace = new Workspace();
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

/** Runs documents against a new simulator. */
async function run(documents: readonly object[], options: SimulatorOptions, ...flags: string[]) {
  simulator = await startSimulatorHere(options);
  workspace.writeDocuments('docs.jsonl', documents);
  const args = ['run', 'docs.jsonl', '--base-url', simulator.url, '--endpoint', 'embeddings', '--quiet'];
  // Groups that are as large as they may be from the first call on.
  args.push('--group-min', '5000');
  return workspace.run([...args, ...flags]);
}

function lines(): Line[] {
  return workspace.readLines<Line>('docs.results.jsonl');
}

function ownVectors(documents: readonly { id: string; text: string }[]): object[] {
  return documents.map(({ id, text }) => ({ id, output: simulatedVector(text) }));
}

describe('documents that share calls', () => {
  it('go a hundred at a time, or alone where that is asked for', async () => {
    const documents = numberedDocuments(1_000);
    const end = await run(documents, {});
    expect(end.exitCode, end.stderr).toBe(0);
    expect(lines()).toMatchObject(ownVectors(documents));
    expect(await simulator.books()).toMatchObject({ calls: 10, documents: 1_000, repeatedCalls: 0 });
    expect(new Set(lines().map(({ request_id }) => request_id)).size).toBe(10);

    const status = await workspace.run(['status', '--json']);
    const groups = { calls: 10, documents: 1_000, fewest_documents: 100, most_documents: 100, splits: 0 };
    expect(JSON.parse(status.stdout)).toMatchObject({ groups });

    await simulator.stop();
    const alone = await run(documents.slice(0, 30), {}, '--group-max', '1', '--name', 'alone');
    expect(alone.exitCode, alone.stderr).toBe(0);
    expect((await simulator.books()).calls).toBe(30);
  });

  it('share its tokens and its cost, which add up to the bill', async () => {
    const documents = numberedDocuments(205).map(({ id, text }, index) => ({
      id,
      text: `${text} ${'More. '.repeat(index % 7)}`,
    }));
    const prices = { inputMicroUsdPerToken: 13, outputMicroUsdPerToken: 0 };
    const end = await run(documents, { prices });
    expect(end.exitCode, end.stderr).toBe(0);
    const { promptTokens } = await simulator.books();
    const sum = (amount: (line: Line) => number): number =>
      lines().reduce((total, line) => total + amount(line), 0);
    expect(sum(({ usage }) => usage.input_tokens)).toBe(promptTokens);
    expect(Math.round(sum(({ cost_usd }) => cost_usd ?? 0) * 1e6)).toBe(promptTokens * 13);
  });

  it('are only those that ask for the same', async () => {
    const documents = numberedDocuments(60).map(({ id, text }, index) => ({
      custom_id: id,
      method: 'POST',
      url: '/v1/embeddings',
      body: { model: 'm', input: text, dimensions: 3 + (index % 3) },
    }));
    const end = await run(documents, {});
    expect(end.exitCode, end.stderr).toBe(0);
    expect(lines().map(({ output }) => output)).toEqual(
      documents.map(({ body }) => simulatedVector(body.input, body.dimensions)),
    );
    expect((await simulator.books()).calls).toBe(3);
  });

  it('come within the inputs and the tokens that a call may have', async () => {
    const long = Array.from({ length: 60 }, (_, index) => ({
      id: `long-${index}`,
      text: `${index} ${'abc '.repeat(6_000)}`,
    }));
    const end = await run(long, {}, '--group-max', '5000', '--param', 'dimensions=2');
    expect(end.exitCode, end.stderr).toBe(0);
    const books = await simulator.books();
    expect(books.refusedByStatus).toEqual({});
    expect(books).toMatchObject({ calls: 2, documents: 60, repeatedCalls: 0 });
  });
});

describe('a call for several documents that goes wrong', () => {
  it('is split until the document that it fails for is alone: of 64, 63 are answered once', async () => {
    const documents = numberedDocuments(63);
    const bad = { id: 'bad', text: 'Of no use. [[simulate:bad-request]]' };
    const end = await run([...documents.slice(0, 40), bad, ...documents.slice(40)], {}, '--group-max', '64');
    expect(end.exitCode, end.stderr).toBe(3);
    expect(lines()).toMatchObject(ownVectors(documents));
    expect(workspace.readLines('docs.errors.jsonl')).toMatchObject([
      { id: 'bad', attempts: 1, error: { kind: 'invalid_request' } },
    ]);
    const { calls, repeatedAccepted } = await simulator.books();
    expect(calls).toBeLessThanOrEqual(14);
    expect(repeatedAccepted).toBe(0);
  });

  it.each(['missing-index', 'unknown-index', 'doubled-index', 'length', 'no-content'])(
    'fails with %s the one document that it leaves without, and asks for that one again',
    async (fault) => {
      const documents = numberedDocuments(30);
      const bad = { id: 'bad', text: `Of no use. [[simulate:${fault}]]` };
      const end = await run([bad, ...documents], {});
      expect(end.exitCode, end.stderr).toBe(3);
      expect(lines()).toMatchObject(ownVectors(documents));
      expect(workspace.readLines('docs.errors.jsonl')).toMatchObject([
        { id: 'bad', error: { kind: 'bad_output' } },
      ]);
      expect((await simulator.books()).repeatedAccepted).toBeLessThan(5);
    },
  );

  it('never gives a document another’s vector, in whatever order and with whatever faults it is answered', async () => {
    const documents = numberedDocuments(1_200).map(({ id, text }, index) => ({
      id,
      text: index % 151 === 0 ? `${text} [[simulate:500-then-ok]]` : text,
    }));
    const errorRate = {
      shuffled: 0.5,
      'missing-index': 0.1,
      'doubled-index': 0.1,
      '503': 0.05,
      truncated: 0.05,
    };
    const end = await run(documents, { errorRate, seed: 7 }, '--group-max', '25', '--max-attempts', '20');
    // Three calls in ten go wrong: whether a document is unlucky each time is chance.
    expect([0, 3], end.stderr).toContain(end.exitCode);
    const answered = new Set(lines().map(({ id }) => id));
    expect(answered.size).toBeGreaterThan(1_100);
    expect(lines()).toMatchObject(ownVectors(documents.filter(({ id }) => answered.has(id))));
    const books = await simulator.books();
    expect(Object.keys(books.behaviours)).toEqual(expect.arrayContaining(['shuffled', 'missing-index']));
  }, 120_000);
});
