/** A prompt is tried on a few documents, over the real program and a simulated server that counts what it is asked. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runInProcess } from '../support/in-process.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

let workspace: Workspace;
let simulator: SimulatorHere;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorHere({
    latencyMs: 5,
    prices: { inputMicroUsdPerToken: 100, outputMicroUsdPerToken: 100 },
  });
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

function run(...args: string[]) {
  return workspace.run(args, { environment: { OPENAI_BASE_URL: simulator.url } });
}

async function callsMade(): Promise<number> {
  return (await simulator.books()).calls;
}

describe('a prompt is tried on a few documents', () => {
  it('under three prompts, and then on all under one of them: nothing is sent twice', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(60));
    const under = (name: string, ...args: string[]) =>
      run(...['run', 'docs.jsonl', '--name', name, '--prompt', `${name}: {{text}}`], ...args);
    for (const [index, name] of ['a', 'b', 'c'].entries()) {
      const { exitCode, stderr, stdout } = await under(name, '--limit', '4');
      expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' });
      expect(await callsMade()).toBe(4 * (index + 1));
      expect(stderr).toMatch(
        /^line 4 · doc-4\n {2}This is document number 4\.\n {2}\S.*\n {2}\d+ in, \d+ out · \$/m,
      );
      expect(stderr).not.toMatch(/line 5 · doc-5/);
      // 30 tokens a document at $100 a million.
      expect(stderr.replaceAll('\n', ' ')).toMatch(
        / 4 of 60 documents tried\. The whole would cost about \$0\.18, by what these took\. The same command without --limit goes on with the rest\./,
      );
      expect(stderr).toMatch(/^4\/4 done \(100%\)/m);
      expect(workspace.readLines(`docs.${name}.results.jsonl`).map(({ line }) => line)).toEqual([1, 2, 3, 4]);
    }
    await under('c', '--limit', '4');
    expect(await callsMade()).toBe(12);
    expect((await under('c')).exitCode).toBe(0);
    expect(await callsMade()).toBe(12 + 56);
    const results = workspace.readLines('docs.c.results.jsonl');
    expect(results.map(({ id }) => id)).toEqual(numberedDocuments(60).map(({ id }) => id));
    expect((await workspace.status('a')).documents).toMatchObject({ completed: 4, pending: 56 });

    const inProcess = (...args: string[]) => runInProcess(args, { folder: workspace.folder });
    const listed = await inProcess('list');
    expect(listed.stdout).toMatch(/^c +finished +60 +\$0\.18 +just now .*\nb +stopped +60 +56 pending /m);
    const compared = await inProcess('compare', 'a', 'b', 'c');
    expect(compared.stdout).toMatch(/^4 documents answered by all 3 runs · all agree on 0 \(0%\)\n/);
    expect(compared.stdout).toMatch(/^a +simulated\/gpt-4o-mini +100% +56 +64 +\$0\.0120 +\d+ ms\n/m);
    expect(compared.stdout).toMatch(/^b +simulated\/gpt-4o-mini +0% /m);
    expect(compared.stdout).toMatch(/^doc-2 +Simulated answer/m);
    const csv = (await inProcess('compare', 'b', 'c', '--csv')).stdout.split('\n');
    expect(csv[0]).toBe('id,agrees,b,b tokens,b cost_usd,b latency_ms,c,c tokens,c cost_usd,c latency_ms');
    expect(csv[4]).toMatch(
      /^doc-4,false,Simulated answer .*,30,0\.003,\d+,Simulated answer .*,30,0\.003,\d+$/,
    );
    expect(csv).toHaveLength(6);
    expect((await inProcess('compare', 'a', 'b', '-o', 'ab.html')).exitCode).toBe(0);
    expect(workspace.read('ab.html')).toMatch(/<th scope="row">doc-1 ≠<\/th><td>Simulated answer/);
    expect(await inProcess('compare', 'a', 'a')).toMatchObject({ exitCode: 2 });

    expect((await inProcess('prune', 'a', '--yes')).stderr).toContain('1 run deleted.');
    expect((await inProcess('list')).stdout).not.toMatch(/^a /m);
    expect((await inProcess('prune', 'a', '--yes')).stderr).toContain("There is no run 'a'.");
    expect((await inProcess('prune', '--yes')).stderr).toContain('Nothing says which runs');
  });

  it('from all over the input, the same ones each time', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(60));
    const linesOf = async (name: string): Promise<number[]> => {
      await run('run', 'docs.jsonl', '--name', name, '--prompt', `${name}: {{text}}`, '--sample', '6');
      return workspace.readLines(`docs.${name}.results.jsonl`).map(({ line }) => line);
    };
    const lines = await linesOf('a');
    expect(lines.map((line) => Math.ceil(line / 10))).toEqual([1, 2, 3, 4, 5, 6]);
    expect(await linesOf('b')).toEqual(lines);
  });

  it('with the document that a chosen one shares its answer with', async () => {
    workspace.writeDocuments('docs.jsonl', [
      ...Array.from({ length: 8 }, () => ({ text: 'one for all' })),
      { text: 'another' },
    ]);
    const { stderr } = await run('run', 'docs.jsonl', '--dedupe', '--sample', '2');
    expect(stderr).not.toMatch(/not answered/);
    expect((await workspace.status()).documents['pending']).toBeLessThanOrEqual(1);
  });

  it('and one that is run again says what changed, what is there already, and how to go on as it was', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    const prompted = (prompt: string, ...args: string[]) =>
      run('run', 'docs.jsonl', '--prompt', `${prompt} {{text}}`, ...args);
    await prompted('Shorten:');
    expect((await prompted('Shorten:')).stderr).toMatch(/^Nothing to send: all 3 were answered earlier\.$/m);
    const refused = await prompted('Translate:', '--model', 'gpt-4o');
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toContain('(changed: the prompt, the model)');
    expect(refused.stderr).toContain('`llm-batch resume docs` goes on as it was');
    expect(refused.stderr).toContain('pay for them');
    expect(await callsMade()).toBe(3);
    await prompted('Shorten:', '--simulate');
    expect((await prompted('Translate:', '--simulate')).stderr).not.toMatch(/\bpa(y|id)/);
  });

  it('by the short names that other programs have', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(2));
    await run('run', 'docs.jsonl', '-m', 'gpt-4o', '-p', 'Shorten: {{text}}', '--limit', '1');
    expect(workspace.readLines('docs.results.jsonl')).toMatchObject([
      { id: 'doc-1', model: 'simulated/gpt-4o' },
    ]);
    const inProcess = (...args: string[]) => runInProcess(args, { folder: workspace.folder });
    const { exitCode, stderr } = await inProcess('docs.jsonl');
    expect({ exitCode, stderr }).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('llm-batch run docs.jsonl'),
    });
    const asked = [await inProcess('run', '--help'), await inProcess('help', 'run')];
    expect(asked[1]?.stdout).toBe(asked[0]?.stdout);
    expect((await inProcess('-v')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it.each([
    [['--limit', '4', '--sample', '4'], /--limit and --sample contradict each other/],
    [['--sample', 'some'], /Expected --sample to be a whole number above 0, got "some"/],
  ])('refuses %j', async (args, words) => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(2));
    const { exitCode, stderr } = await run('run', 'docs.jsonl', ...args);
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(words);
  });
});

describe('a try', () => {
  it('by remote batches hands in those alone, and the rest follow without it', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(12));
    const remote = (...args: string[]) =>
      runInProcess(['run', 'docs.jsonl', '--remote', '--poll-interval', '50ms', ...args], {
        folder: workspace.folder,
        environment: { OPENAI_BASE_URL: simulator.url },
      });
    expect((await remote('--limit', '4')).exitCode).toBe(0);
    expect(workspace.readLines('docs.results.jsonl').map(({ line }) => line)).toEqual([1, 2, 3, 4]);
    expect((await remote()).exitCode).toBe(0);
    expect(workspace.readLines('docs.results.jsonl')).toHaveLength(12);
    expect((await workspace.status()).documents).toMatchObject({ completed: 12 });
    expect(Object.values((await simulator.books()).callsByDocument).filter((calls) => calls > 1)).toEqual([]);
  });

  it('of a dry run says what it would send', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(12));
    for (const flag of ['--limit', '--sample']) {
      const { stderr } = await runInProcess(['run', 'docs.jsonl', '--simulate', '--dry-run', flag, '4'], {
        folder: workspace.folder,
      });
      expect(stderr).toMatch(new RegExp(`^${flag} 4 would send 4 of the 12 documents now`, 'm'));
    }
    expect(await callsMade()).toBe(0);
  });
});
