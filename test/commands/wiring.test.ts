/** What one command leaves is what the next one finds, and what comes between two steps is not lost between them. */
import { writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Interrupts } from '../../src/app/interrupts.js';
import { systemClock } from '../../src/core/clock.js';
import { type Simulator, startSimulator } from '../../src/simulator/simulator.js';
import { type InProcessOptions, runInProcess } from '../support/in-process.js';
import { waitFor } from '../support/wait-for.js';
import { numberedDocuments, type StatusReport, Workspace } from '../support/workspace.js';

let workspace: Workspace;
let simulator: Simulator;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulator({}, { clock: systemClock });
});

afterEach(async () => {
  await simulator.close();
  workspace.remove();
});

function llmBatch(args: readonly string[], options: Partial<InProcessOptions> = {}) {
  const environment = { OPENAI_BASE_URL: simulator.url };
  return runInProcess(args, { folder: workspace.folder, environment, ...options });
}

async function status(...args: readonly string[]): Promise<StatusReport & { readonly prices: unknown }> {
  return JSON.parse((await llmBatch(['status', '--json', ...args])).stdout);
}

describe('a user who asks to stop', () => {
  it('between the import and the first call is heard: nobody is called, and resume goes on', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    const interrupts = new Interrupts(systemClock);
    const { exitCode, stderr } = await llmBatch(['run', 'docs.jsonl'], {
      interrupts,
      onStderr: (text) => {
        if (text.includes('imported') && interrupts.count === 0) interrupts.raise('SIGINT');
      },
    });
    expect(exitCode, stderr).toBe(130);
    expect(simulator.books().calls).toBe(0);
    expect(await status()).toMatchObject({ status: 'open', documents: { pending: 3 } });
    expect((await llmBatch(['resume'])).exitCode).toBe(0);
    expect(simulator.books().calls).toBe(3);
  });
});

describe('a file that turns up where the results go, while the run goes on', () => {
  it('is not overwritten then, nor by the resume that comes after', async () => {
    simulator.reconfigure({ latencyMs: 300 });
    workspace.writeDocuments('docs.jsonl', numberedDocuments(2));
    const running = llmBatch(['run', 'docs.jsonl']);
    await waitFor('a call', () => simulator.books().calls > 0);
    writeFileSync(workspace.path('docs.results.jsonl'), 'foreign\n');
    const { exitCode, stderr } = await running;
    expect(exitCode, stderr).toBe(5);
    expect(stderr).toContain('safe in the store');

    const resumed = await llmBatch(['resume']);
    expect(resumed.exitCode, resumed.stderr).toBe(2);
    expect(workspace.read('docs.results.jsonl')).toBe('foreign\n');
    expect((await llmBatch(['results', '-o', 'elsewhere.jsonl'])).exitCode).toBe(0);
    expect(workspace.readLines('elsewhere.jsonl')).toHaveLength(2);
  });
});

describe('failed documents that are put back', () => {
  it('open their run again, so that resume finds it before a younger finished one', async () => {
    workspace.writeDocuments('docs.jsonl', [{ text: '[[simulate:refuse]] No.' }, { text: 'Yes.' }]);
    workspace.writeDocuments('later.jsonl', numberedDocuments(1));
    expect((await llmBatch(['run', 'docs.jsonl'])).exitCode).toBe(3);
    expect((await llmBatch(['run', 'later.jsonl'])).exitCode).toBe(0);
    expect(await status('docs')).toMatchObject({ status: 'finished', documents: { failed: 1 } });
    expect((await llmBatch(['retry', 'docs'])).exitCode).toBe(0);
    expect(await status()).toMatchObject({ run: 'docs', status: 'open', documents: { pending: 1 } });

    simulator.heal();
    expect((await llmBatch(['resume'])).exitCode).toBe(0);
    expect(await status('docs')).toMatchObject({ status: 'finished', documents: { completed: 2 } });
    expect(simulator.books().calls).toBe(4);
  });
});

describe('the results file that -o named', () => {
  it('is where resume goes on writing, from another folder too', async () => {
    simulator.reconfigure({ insufficientQuotaAfter: 1 });
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    const args = ['run', 'docs.jsonl', '-o', 'answers.jsonl', '--concurrency', '1'];
    expect((await llmBatch(args)).exitCode).toBe(4);
    expect(workspace.readLines('answers.jsonl')).toHaveLength(1);
    simulator.heal();
    const { exitCode, stderr } = await llmBatch(['resume', '--db', workspace.storePath], { folder: '/' });
    expect(exitCode, stderr).toBe(0);
    expect(workspace.readLines('answers.jsonl')).toHaveLength(3);
  });
});

describe('an input that is run again', () => {
  it('with nothing new keeps what its answers were priced by', async () => {
    const documents = numberedDocuments(2);
    workspace.write('prices.json', JSON.stringify({ models: { 'gpt-4o-mini': { input: 1, output: 2 } } }));
    workspace.writeDocuments('docs.jsonl', documents);
    await llmBatch(['run', 'docs.jsonl', '--prices', 'prices.json']);
    const { prices } = await status();
    expect(JSON.stringify(prices)).toContain('prices.json');
    expect((await llmBatch(['run', 'docs.jsonl'])).exitCode).toBe(0);
    expect((await status()).prices).toEqual(prices);
    expect(simulator.books().calls).toBe(2);
  });

  it('asks as it is told now: other parameters go with what is still open', async () => {
    simulator.reconfigure({ insufficientQuotaAfter: 1 });
    workspace.writeDocuments('docs.jsonl', numberedDocuments(2));
    const run = ['run', 'docs.jsonl', '--concurrency', '1', '--keep'];
    expect((await llmBatch(run)).exitCode).toBe(4);
    simulator.heal();
    simulator.reconfigure({ models: ['another-model'] });
    const { exitCode, stderr } = await llmBatch([...run, '--model', 'another-model']);
    expect(exitCode, stderr).toBe(0);
    expect(await status()).toMatchObject({ documents: { completed: 2 } });
  });
});
