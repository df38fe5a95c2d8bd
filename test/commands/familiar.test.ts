/** Names that people bring along from other programs, and slips of the keys. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configName } from '../../src/config/familiar-names.js';
import { SETTINGS } from '../../src/config/settings.js';
import { runInProcess } from '../support/in-process.js';
import { Workspace } from '../support/workspace.js';

let workspace: Workspace;

beforeEach(() => {
  workspace = new Workspace();
  workspace.writeDocuments('docs.jsonl', [{ text: 'Hi.' }]);
});

afterEach(() => workspace.remove());

function type(...words: readonly string[]) {
  return runInProcess(words, { folder: workspace.folder });
}

describe('a flag of another program', () => {
  it.each([
    ['--workers 4', 'did you mean --concurrency <n|auto>?'],
    ['--parallel=4', 'did you mean --concurrency <n|auto>?'],
    ['--api-key sk-abc', '--api-key-env NAME'],
    ['--output-format csv', 'the ending of -o FILE says it'],
    ['--url http://localhost', 'did you mean --base-url <url>?'],
    ['--max-retries 3', 'did you mean --max-attempts <n>?'],
    ['--system-prompt x', 'did you mean --system <template>?'],
    ['--input x', 'llm-batch run FILE'],
  ])('%s is answered with what this one calls it', async (flags, hint) => {
    const { exitCode, stderr } = await type('run', 'docs.jsonl', ...flags.split(' '));
    expect(exitCode).toBe(2);
    expect(stderr).toContain(hint);
    expect(stderr).not.toContain('sk-abc');
  });

  it('is no flag where it is the value of one', async () => {
    const asked = await type('run', 'docs.jsonl', '--simulate', '--prompt', '--workers', '--dry-run');
    expect(asked.stderr).toContain('names no field');
  });
});

describe('a key of the settings file', () => {
  const settings = (content: object) => {
    workspace.write('llm-batch.config.json', JSON.stringify(content));
    return type('run', 'docs.jsonl', '--simulate', '--dry-run');
  };

  it('is named like its flag, whatever stands between the words', async () => {
    for (const key of ['maxCost', 'max-cost', 'max_cost', 'maxCostMicroUsd']) {
      expect((await settings({ [key]: 'dear' })).stderr).toContain("'maxCost' in llm-batch.config.json");
    }
    expect((await settings({ timeout: '5s', color: false })).exitCode).toBe(0);
    expect((await settings({ maxCost: 1, 'max-cost': 2 })).stderr).toContain('twice, in two spellings');
  });

  it.each([
    ['workers', "did you mean 'concurrency'?"],
    ['temprature', "did you mean 'temperature'?"],
    ['output_format', 'known are '],
    ['config', 'known are '],
  ])('%s that is none is told, with the one that is meant', async (key, hint) => {
    const refused = await settings({ [key]: 'x' });
    expect(refused).toMatchObject({ exitCode: 2 });
    expect(refused.stderr).toContain(hint);
  });

  it('is of one setting alone', () => {
    const names = SETTINGS.map(configName);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe('--temperature and --max-tokens', () => {
  it.each([
    ['chat', { temperature: 0.2, max_tokens: 50 }],
    ['completions', { temperature: 0.2, max_tokens: 50 }],
    ['responses', { temperature: 0.2, max_output_tokens: 50 }],
  ])('are sent to %s by the names that it has for them', async (endpoint, body) => {
    const flags = ['--temperature', '0.2', '--max-tokens', '50', '--endpoint', endpoint];
    const { stdout, exitCode } = await type('run', 'docs.jsonl', '--simulate', '--dry-run', ...flags);
    expect(exitCode).toBe(0);
    for (const [name, value] of Object.entries(body)) {
      expect(stdout.replace(/\s+/g, '')).toContain(`"${name}":${value}`);
    }
  });

  it('give way to --param, and are refused where nothing is written', async () => {
    const { stdout } = await type(
      ...['run', 'docs.jsonl', '--simulate', '--dry-run', '--temperature', '1', '--param', 'temperature=0'],
    );
    expect(stdout.replace(/\s+/g, '')).toContain('"temperature":0');
    const refused = await type(
      'run',
      'docs.jsonl',
      '--endpoint',
      'embeddings',
      '--max-tokens',
      '5',
      '--simulate',
    );
    expect(refused.stderr).toContain('cannot be sent');
  });
});
