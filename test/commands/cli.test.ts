/** What a user types and what comes back: exit codes, words, files, and data on standard output alone. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runInProcess } from '../support/in-process.js';
import { jsonLines } from '../support/program.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { waitFor } from '../support/wait-for.js';
import { answerTo, numberedDocuments, type ResultLine, Workspace } from '../support/workspace.js';

const FIXTURES = join(import.meta.dirname, '..', '..', 'fixtures');

let workspace: Workspace;

beforeEach(() => {
  workspace = new Workspace();
});

afterEach(() => workspace.remove());

function inProcess(...args: readonly string[]) {
  return runInProcess(args, { folder: workspace.folder });
}

describe('wrong usage', () => {
  beforeEach(() => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    workspace.writeDocuments('numbers.jsonl', [{ id: 1, stars: 5 }]);
    workspace.write('empty.jsonl', '\n\n');
    workspace.write('table.csv', 'text\none\n');
    workspace.write('prompt.txt', '{{text}}');
    workspace.write('blank.txt', ' \n');
  });

  it.each<[what: string, args: string, says: readonly string[]]>([
    ['no input', 'run', ["missing required argument 'input'"]],
    ['two inputs of rows', 'run docs.jsonl table.csv', ['only if they are of one format']],
    ['an unknown command', 'rum docs.jsonl', ["unknown command 'rum'", 'Did you mean run?']],
    [
      'an unknown flag',
      'run docs.jsonl --promt x',
      ["unknown option '--promt'", 'Did you mean --prompt?', 'try: llm-batch run --help'],
    ],
    ['no key', 'run docs.jsonl', ['OPENAI_API_KEY is not set', '--base-url', '--simulate']],
    [
      'several keys that are not set',
      'run docs.jsonl --api-key-env KEY_A,KEY_B',
      ['variables KEY_A, KEY_B are not set', 'export KEY_A=… KEY_B=…'],
    ],
    ['a named key that is not set', 'run docs.jsonl --api-key-env MY_KEY', ['MY_KEY is not set']],
    ['words for a number', 'run docs.jsonl --simulate --rpm many', ['--rpm', '"many"']],
    [
      'answers longer than the tokens of a minute',
      'run docs.jsonl --simulate --tpm 1000 --param max_tokens=1000',
      ['1000 tokens', '--tpm', 'lower --param max_tokens'],
    ],
    ['nothing per minute', 'run docs.jsonl --simulate --rpm 0', ['--rpm', 'at least 1']],
    ['no attempt', 'run docs.jsonl --simulate --max-attempts 0', ['--max-attempts']],
    ['a time that is none', 'run docs.jsonl --simulate --timeout soon', ['--timeout', '"soon"', '30s']],
    ['a negative size', 'run docs.jsonl --simulate --max-line-bytes -1', ['--max-line-bytes']],
    [
      'an address that is none',
      'run docs.jsonl --base-url nonsense',
      ['"nonsense"', 'http://localhost:11434/v1'],
    ],
    ['another protocol', 'run docs.jsonl --base-url ftp://here', ['ftp://here', 'http']],
    ['a missing input', 'run nope.jsonl --simulate', ['nope.jsonl', 'Check the path']],
    ['a folder', 'run . --simulate', ['is a folder']],
    ['an empty input', 'run empty.jsonl --simulate', ['empty.jsonl', 'blank lines']],
    ['no text to send', 'run numbers.jsonl --simulate', ['id, stars', '--prompt']],
    ['a field that is missing', 'run docs.jsonl --simulate --prompt {{txet}}', ['txet']],
    ['an open template', 'run docs.jsonl --simulate --prompt {{text', ['opens {{ and does not close it']],
    ['a prompt without a field', 'run docs.jsonl --simulate --prompt hello', ['{{']],
    [
      'two prompts',
      'run docs.jsonl --simulate --prompt {{text}} --prompt-file prompt.txt',
      ['--prompt-file', 'both'],
    ],
    ['a missing prompt file', 'run docs.jsonl --simulate --prompt-file nope.txt', ['nope.txt']],
    ['an empty prompt file', 'run docs.jsonl --simulate --prompt-file blank.txt', ['blank.txt', 'empty']],
    [
      'a parameter without value',
      'run docs.jsonl --simulate --param temperature',
      ['temperature', 'name=value'],
    ],
    ['output over input', 'run docs.jsonl --simulate -o docs.jsonl', ['is the input itself']],
    [
      'output into no folder',
      'run docs.jsonl --simulate -o none/out.jsonl',
      ['none/out.jsonl', 'no call was made'],
    ],
    ['both ways with changed rows', 'run docs.jsonl --simulate --keep --rerun-changed', ['contradict']],
    ['an unknown format', 'results --format xml', ['xml', 'jsonl, csv, openai']],
    ['an unknown filter', 'results --only some', ['some', 'completed, failed, all']],
    ['an unknown kind', 'retry --kind cosmic', ["'cosmic'", 'rate_limited']],
    ['a latency that is none', 'simulate --latency soon', ['--latency', '"soon"']],
    ['a port that is none', 'simulate --port 99999', ['port']],
  ])('%s: `%s` exits 2 and says what and how', async (_, args, says) => {
    const end = await workspace.run(args.split(' '));
    expect(end.exitCode, end.stderr).toBe(2);
    expect(end.stdout).toBe('');
    for (const words of says) expect(end.stderr).toContain(words);
    expect(end.stderr).not.toMatch(/\n\s+at /);
    // Nothing of it is left for later commands to find.
    const status = await inProcess('status');
    expect(status.exitCode).not.toBe(0);
    expect(status.stderr).toMatch(/no store|no run/);
  });

  it.each(['status', 'resume', 'results', 'failures', 'retry', 'cancel', 'report'])(
    '%s without a store says so, and makes none',
    async (command) => {
      const end = await inProcess(command);
      expect([2, 5]).toContain(end.exitCode);
      expect(end.stderr).toContain('llm-batch run');
      expect(end.stdout).toBe('');
      expect(existsSync(workspace.path('llm-batch.db'))).toBe(false);
    },
  );

  it('an unknown run is told with the runs there are', async () => {
    await inProcess('run', 'docs.jsonl', '--simulate');
    for (const command of ['status', 'resume', 'results', 'failures', 'retry']) {
      const end = await inProcess(command, 'nope');
      expect(end.exitCode).toBe(2);
      expect(end.stderr).toContain("no run 'nope'");
      expect(end.stderr).toContain('docs-simulated');
    }
  });

  it('a file that is no store is left alone', async () => {
    workspace.write('llm-batch.db', 'This is my diary, not a database, and longer than a header of one is.');
    const end = await inProcess('run', 'docs.jsonl', '--simulate');
    expect(end.exitCode).toBe(5);
    expect(end.stderr).toContain('llm-batch.db');
    expect(workspace.read('llm-batch.db')).toContain('This is my diary');
  });
});

describe('help', () => {
  it('lists every command, and each explains itself', async () => {
    const top = await inProcess('--help');
    expect(top.stdout).toContain('Exit codes');
    const commands = [...top.stdout.matchAll(/^ {2}([a-z]+) .*\[options\]|^ {2}([a-z]+) \[options\]/gm)].map(
      (match) => match[1] ?? match[2] ?? '',
    );
    expect(commands).toEqual(
      expect.arrayContaining(['run', 'resume', 'status', 'results', 'failures', 'retry', 'simulate']),
    );
    for (const command of commands) {
      const end = await inProcess(command, '--help');
      expect(end.stderr).toBe('');
      expect(end.stdout).toContain(`Usage: llm-batch ${command}`);
    }
  });

  it('comes from the installed program as well, on standard output, with exit code 0', async () => {
    const end = await workspace.run(['run', '--help']);
    expect(end).toMatchObject({ exitCode: 0, stderr: '' });
    expect(end.stdout).toContain('--simulate');
    expect((await workspace.run(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    const bare = await workspace.run([]);
    expect(bare).toMatchObject({ exitCode: 2, stdout: '' });
  });
});

describe('input', () => {
  it('with bad lines stops before any call, names each line, and leaves no run behind', async () => {
    const bad = join(FIXTURES, 'bad-lines.jsonl');
    workspace.write('bad.jsonl', readFileSync(bad));
    const end = await inProcess('run', 'bad.jsonl', '--simulate');
    expect(end.exitCode).toBe(2);
    expect(end.stderr).toContain('19 bad lines in bad.jsonl');
    expect(end.stderr).toMatch(/line +5 +not JSON/);
    expect(end.stderr).toMatch(/line +12 +not valid UTF-8/);
    expect(end.stderr).toContain('--skip-bad-lines');
    expect((await inProcess('status')).stderr).toContain('no run');
    expect(existsSync(workspace.path('bad.rejects.jsonl'))).toBe(false);

    const skipped = await inProcess('run', 'bad.jsonl', '--simulate', '--skip-bad-lines');
    expect(skipped.exitCode, skipped.stderr).toBe(0);
    expect(skipped.stderr).toContain('bad.rejects.jsonl');
    const rejects = workspace.readLines<{ line: number; reason: string; text: string }>('bad.rejects.jsonl');
    expect(rejects.map(({ line }) => line)).toEqual([
      5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 18, 19, 20, 21, 22, 23, 24, 25, 27,
    ]);
    expect(rejects[0]).toMatchObject({
      reason: expect.stringContaining('not JSON'),
      text: 'this line is not JSON',
    });
    const results = workspace.readLines('bad.results.jsonl');
    expect(results.map(({ line }) => line)).toEqual([1, 2, 14, 16, 17, 26, 28, 29]);
  });

  it('without one good line is not offered to be skipped', async () => {
    workspace.writeDocuments('docs.jsonl', [{ text: 'x' }]);
    const end = await inProcess('run', 'docs.jsonl', '--prompt', '{{tezt}}', '--simulate');
    expect(end.stderr).toContain('The input has 1 bad line; no call was made.\nmend it; `llm-batch check`');
    expect(end.stderr).not.toContain('--skip-bad-lines');
  });

  it('without a name is told, and not taken for the folder', async () => {
    const end = await inProcess('run', '', '--simulate');
    expect(end).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('The name of the input is empty.'),
    });
  });

  it('comes from standard input, with results in the folder it was started in', async () => {
    const documents = numberedDocuments(5);
    const input = documents.map((document) => `${JSON.stringify(document)}\n`).join('');
    const end = await workspace.run(['run', '-', '--simulate'], { input });
    expect(end.exitCode, end.stderr).toBe(0);
    expect(end.stdout).toBe('');
    expect(workspace.readLines('stdin.results.jsonl').map(({ id }) => id)).toEqual(
      documents.map(({ id }) => id),
    );
  });

  it('comes from standard input, of which the folder for temporary files keeps nothing, whatever the end', async () => {
    mkdirSync(workspace.path('tmp'));
    const environment = { TMPDIR: workspace.path('tmp') };
    const kept = (): string[] => readdirSync(workspace.path('tmp'));
    const args = ['run', '-', '--simulate'];
    const cut = workspace.start(args, { environment, keepStdinOpen: true });
    await waitFor('standard input to be kept', () => kept().length > 0);
    cut.kill('SIGINT');
    expect(await cut.ended).toMatchObject({ exitCode: 130 });
    expect(kept()).toEqual([]);
    const input = '{"text":"a"}\n';
    expect(await workspace.run(args, { environment, input })).toMatchObject({ exitCode: 0 });
    expect(kept()).toEqual([]);

    rmSync(workspace.path('tmp'), { recursive: true });
    const end = await workspace.run(args, { environment, input });
    expect(end.exitCode).toBe(2);
    expect(end.stderr).toContain(`the folder for temporary files, ${workspace.path('tmp')}: ENOENT`);
    expect(end.stderr).toContain('name another folder in TMPDIR');
  });

  it('may be compressed, and may hold request bodies and Batch API lines', async () => {
    for (const name of ['requests', 'batch-api']) {
      workspace.write(`${name}.jsonl.gz`, gzipSync(readFileSync(join(FIXTURES, `${name}.jsonl`))));
      const end = await inProcess('run', `${name}.jsonl.gz`, '--simulate');
      expect(end.exitCode, end.stderr).toBe(0);
      const lines = readFileSync(join(FIXTURES, `${name}.jsonl`), 'utf8')
        .trim()
        .split('\n');
      expect(workspace.readLines(`${name}.results.jsonl`)).toHaveLength(lines.length);
    }
  });
});

describe('output', () => {
  let simulator: SimulatorHere;

  beforeEach(async () => {
    simulator = await startSimulatorHere();
  });

  afterEach(() => simulator.stop());

  function run(...flags: readonly string[]) {
    return workspace.run(['run', 'docs.jsonl', '--base-url', simulator.url, ...flags]);
  }

  it('- streams each answer to standard output, which carries nothing else', async () => {
    const documents = [...numberedDocuments(5), { id: 'bad', text: '[[simulate:bad-request]] No.' }];
    workspace.writeDocuments('docs.jsonl', documents);
    const end = await run('-o', '-');
    expect(end.exitCode, end.stderr).toBe(3);
    const lines = jsonLines<ResultLine>(end.stdout);
    expect(lines.map(({ id, output }) => ({ id, output })).sort((a, b) => a.id.localeCompare(b.id))).toEqual(
      numberedDocuments(5).map(({ id, text }) => ({ id, output: answerTo(text) })),
    );
    expect(workspace.readLines('docs.errors.jsonl').map(({ id }) => id)).toEqual(['bad']);
    expect(existsSync(workspace.path('docs.results.jsonl'))).toBe(false);
  });

  it('never overwrites a file of somebody else, unless forced', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(2));
    workspace.write('docs.results.jsonl', 'mine\n');
    const refused = await run();
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toContain('docs.results.jsonl exists');
    expect(refused.stderr).toContain('--force');
    expect(workspace.read('docs.results.jsonl')).toBe('mine\n');
    expect((await simulator.books()).calls).toBe(0);

    expect((await run('--force')).exitCode).toBe(0);
    expect(workspace.readLines('docs.results.jsonl')).toHaveLength(2);
    // Its own file it may write again.
    expect((await run()).exitCode).toBe(0);
  });

  it('that was given a name keeps it over a stop, for resume and results too', async () => {
    workspace.writeDocuments('docs.jsonl', [
      ...numberedDocuments(2),
      { id: 'stop', text: '[[simulate:insufficient-quota]] Stop here.' },
    ]);
    expect((await run('-o', 'named.jsonl', '--concurrency', '1')).exitCode).toBe(4);
    expect(workspace.readLines('named.jsonl')).toHaveLength(2);
    await simulator.heal();
    expect((await inProcess('resume')).exitCode).toBe(0);
    expect(workspace.readLines('named.jsonl')).toHaveLength(3);
    expect((await inProcess('results')).stderr).toContain('named.jsonl');
    expect(existsSync(workspace.path('docs.results.jsonl'))).toBe(false);
  });

  it('has no colour where it is no terminal, nor escape sequences', async () => {
    workspace.writeDocuments('docs.jsonl', [
      ...numberedDocuments(2),
      { id: 'bad', text: '[[simulate:bad-request]] No.' },
    ]);
    const ends = [
      await run(),
      await workspace.run(['status']),
      await workspace.run(['failures']),
      await workspace.run(['status', 'nope']),
    ];
    for (const { stdout, stderr } of ends) expect(stdout + stderr).not.toContain('\u001b');
    const coloured = await workspace.run(['status'], { environment: { FORCE_COLOR: '1', NO_COLOR: '' } });
    expect(coloured.stdout).toContain('\u001b[');
    const flag = await workspace.run(['status', '--no-color'], { environment: { FORCE_COLOR: '1' } });
    expect(flag.stdout).not.toContain('\u001b');
  });

  it('says little when told to, and JSON lines when told to', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(2));
    expect((await run('--log-json')).stderr.split('\n').filter((line) => line !== '')).toEqual(
      expect.arrayContaining([expect.stringMatching(/^\{"time":"\d{4}-.*"event":"ended".*\}$/)]),
    );
    for (const line of (await run('--log-json')).stderr.trim().split('\n')) {
      expect(JSON.parse(line)).toMatchObject({ time: expect.any(String), event: expect.any(String) });
    }
  });

  it('tells the life of a run in JSON lines, each event once and in its order', async () => {
    workspace.write('docs.jsonl', '{"id": 1, "text": "one"}\n{"id": 2}\n');
    const { stderr } = await run('--skip-bad-lines', '--log-json');
    const events = stderr.trim().split('\n');
    expect(events.map((line) => (JSON.parse(line) as { event: string }).event)).toEqual([
      'rejects_written',
      'imported',
      'sending',
      'bad_lines',
      'started',
      'written',
      'ended',
    ]);
  });
});

describe('after a run', () => {
  let simulator: SimulatorHere;
  const documents = [
    ...numberedDocuments(3),
    { id: 'refused', text: '[[simulate:refuse]] No.', metadata: { shelf: 7 } },
    { id: 'bad-1', text: '[[simulate:bad-request]] One.' },
    { id: 'bad-2', text: '[[simulate:bad-request]] Two.' },
  ];

  beforeEach(async () => {
    simulator = await startSimulatorHere();
    workspace.writeDocuments('docs.jsonl', documents);
    const end = await inProcess('run', 'docs.jsonl', '--base-url', simulator.url);
    expect(end.exitCode, end.stderr).toBe(3);
  });

  afterEach(() => simulator.stop());

  it('status --json has a shape that scripts can rely on', async () => {
    const { stdout } = await inProcess('status', '--json');
    expect(JSON.parse(stdout)).toMatchObject({
      run: 'docs',
      status: 'finished',
      simulated: false,
      input: workspace.path('docs.jsonl'),
      halt_reason: null,
      drained_by: null,
      documents: { total: 6, pending: 0, in_progress: 0, completed: 3, failed: 3, cancelled: 0, gone: 0 },
      failed_by_kind: { refused: 1, invalid_request: 2 },
      calls: { made: 6, open: 0, failed: 3, repeated: 0, late: 0 },
      tokens: { input: expect.any(Number), output: expect.any(Number), cached: 0, reasoning: 0 },
      cost_usd: expect.any(Number),
      latency_ms: {
        mean: expect.any(Number),
        p50: expect.any(Number),
        p95: expect.any(Number),
        p99: expect.any(Number),
      },
      files: [workspace.path('docs.results.jsonl'), workspace.path('docs.errors.jsonl')],
    });
    const page = (await inProcess('status')).stdout;
    for (const words of ['docs', '6 documents', 'completed', 'failed', 'p95']) expect(page).toContain(words);
  });

  it('results come in every format, for every filter, with and without their input', async () => {
    const ids = async (...flags: readonly string[]): Promise<string[]> => {
      const { stdout } = await inProcess('results', '-o', '-', ...flags);
      return jsonLines<ResultLine>(stdout).map(({ id }) => id);
    };
    expect(await ids()).toEqual(['doc-1', 'doc-2', 'doc-3']);
    expect(await ids('--only', 'failed')).toEqual(['refused', 'bad-1', 'bad-2']);
    expect(await ids('--only', 'all')).toEqual(documents.map(({ id }) => id));

    const failed = jsonLines(
      (await inProcess('results', '-o', '-', '--only', 'failed', '--include-input')).stdout,
    );
    expect(failed[0]).toMatchObject({
      id: 'refused',
      line: 4,
      status: 'failed',
      error: {
        kind: 'refused',
        message: expect.any(String),
        http_status: 200,
        request_id: expect.any(String),
      },
      attempts: 1,
      failed_at: expect.any(String),
      metadata: { shelf: 7 },
      document: documents[3],
    });

    const csv = (await inProcess('results', '-o', '-', '--format', 'csv')).stdout;
    expect(csv.split('\n')[0]).toMatch(/^\uFEFF?id,line,status,/);
    expect(csv).toContain(answerTo(documents[0]?.text ?? ''));
    const [openai] = jsonLines((await inProcess('results', '-o', '-', '--format', 'openai')).stdout);
    expect(openai).toMatchObject({ custom_id: 'doc-1', response: { status_code: 200 }, error: null });

    const file = await inProcess('results', '--format', 'csv');
    expect(file.stderr).toContain('docs.results.csv');
    expect(workspace.read('docs.results.csv')).toBe(csv);
  });

  it('failures are grouped by kind, with an example and what to do', async () => {
    const { stdout } = await inProcess('failures', '--json');
    const report = JSON.parse(stdout) as { run: string; failures: { kind: string; count: number }[] };
    expect(report.run).toBe('docs');
    expect(report.failures.map(({ kind, count }) => ({ kind, count }))).toEqual([
      { kind: 'invalid_request', count: 2 },
      { kind: 'refused', count: 1 },
    ]);
    expect(report.failures[0]).toMatchObject({
      example: { id: 'bad-1', line: 5, http_status: 400, request_id: expect.stringContaining('req_') },
      advice: expect.any(String),
    });
    const page = (await inProcess('failures')).stdout;
    for (const words of ['invalid_request', 'refused', 'bad-1']) expect(page).toContain(words);
  });

  it('retry puts back what it is asked for, and resume sends just that', async () => {
    await simulator.heal();
    const byId = await inProcess('retry', '--id', 'bad-2');
    expect(byId.stderr).toContain('1 document');
    expect(byId.stderr).toContain('llm-batch resume docs');
    const before = (await simulator.books()).calls;
    expect((await inProcess('resume')).exitCode).toBe(3);
    expect((await simulator.books()).calls).toBe(before + 1);

    expect((await inProcess('retry', '--kind', 'refused')).exitCode).toBe(0);
    expect((await workspace.status()).documents).toMatchObject({ completed: 4, pending: 1, failed: 1 });
    expect((await inProcess('retry', '--id', 'nobody')).stderr).toContain('nothing changed');
    expect((await inProcess('retry')).exitCode).toBe(0);
    expect((await inProcess('resume')).exitCode).toBe(0);
    expect(workspace.readLines('docs.results.jsonl').map(({ id }) => id)).toEqual(
      documents.map(({ id }) => id),
    );
    expect(existsSync(workspace.path('docs.errors.jsonl'))).toBe(false);
  });

  it('resume of a finished run calls nobody', async () => {
    const before = (await simulator.books()).calls;
    expect((await inProcess('resume')).exitCode).toBe(3);
    expect((await simulator.books()).calls).toBe(before);
  });
});

describe('simulate', () => {
  it('says where it listens on standard output, answers a run, and ends with Ctrl-C', async () => {
    const server = workspace.start(['simulate', '--port', '0', '--latency', '1ms..5ms', '--rpm', '600']);
    await waitFor('its address', () => server.stdout().includes('\n'));
    const { url } = JSON.parse(server.stdout()) as { url: string };
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    const end = await inProcess('run', 'docs.jsonl', '--base-url', url);
    expect(end.exitCode, end.stderr).toBe(0);
    expect(workspace.read('docs.results.jsonl')).toContain('"model":"simulated/');
    server.kill('SIGINT');
    expect((await server.ended).exitCode).toBe(0);
    expect(server.stderr()).toContain('answers are made up');
  });
});
