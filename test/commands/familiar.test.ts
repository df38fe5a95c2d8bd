/** Names that people bring along from other programs, and slips of the keys. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SETTINGS } from '../../src/config/settings.js';
import { runInProcess } from '../support/in-process.js';
import { jsonLines } from '../support/program.js';
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
    const names = SETTINGS.map(({ key }) => key);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe('what goes wrong', () => {
  it.each([
    [['run', 'gone.jsonl', '--simulate'], { code: 'INPUT_NOT_FOUND', exit_code: 2 }],
    [
      ['run', 'docs.jsonl', '--wrokers', '3'],
      { message: expect.stringContaining("'--wrokers'"), exit_code: 2 },
    ],
  ])('is told under --log-json as one line of JSON: %j', async (words, told) => {
    const end = await workspace.run([...words, '--log-json']);
    expect(end).toMatchObject({ exitCode: 2, stdout: '' });
    expect(jsonLines(end.stderr)).toEqual([expect.objectContaining({ event: 'error', ...told })]);
  });

  it('is told under --quiet too: bad lines, and why a run was stopped', async () => {
    workspace.write('broken.jsonl', '{broken\n');
    const refused = await type('run', 'broken.jsonl', '--simulate', '--quiet');
    expect(refused.stderr).toMatch(/^1 bad line in broken\.jsonl:\n {2}line 1 {2}not JSON/);
    workspace.writeDocuments('stop.jsonl', [{ text: '[[simulate:insufficient-quota]]' }]);
    const stopped = await type('run', 'stop.jsonl', '--simulate', '--quiet');
    expect(stopped).toMatchObject({ exitCode: 4, stdout: '' });
    expect(stopped.stderr).toMatch(/^stopping: quota_exhausted: .*\n {2}try: /);
    expect(await type('run', 'docs.jsonl', '--simulate', '--quiet')).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: '',
    });
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
