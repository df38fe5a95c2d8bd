/** Inputs of every format, from the file to the answers and back to a file of the same format. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { parse } from 'csv-parse/sync';
import { stringify } from 'csv-stringify/sync';
import { parquetReadObjects } from 'hyparquet';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runInProcess } from '../support/in-process.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { answerTo, Workspace } from '../support/workspace.js';

let workspace: Workspace;
let simulator: SimulatorHere;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorHere();
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

function command(...args: readonly string[]) {
  return runInProcess(args, { folder: workspace.folder });
}

function run(...args: readonly string[]) {
  return command('run', ...args, '--base-url', simulator.url);
}

async function callsOf(work: () => Promise<unknown>): Promise<number> {
  const before = (await simulator.books()).calls;
  await work();
  return (await simulator.books()).calls - before;
}

type Row = Readonly<Record<string, string>>;

/** Texts with all that a format may stumble over. */
function reviews(count: number): Row[] {
  const oddities = ['plain', 'a, b; c\td', 'she said "hi"', 'two\nlines', 'ä — 😀', '=1+1', ' spaces '];
  return Array.from({ length: count }, (_, index) => ({
    id: `review-${index + 1}`,
    text: `Review ${index + 1}: ${oddities[index % oddities.length]}`,
    '2026': String(index),
    language: index % 2 === 0 ? 'en' : '',
  }));
}

/** The same rows in each format; the columns in one order. */
const COLUMNS = ['id', 'text', '2026', 'language'] as const;

function jsonl(rows: readonly Row[]): string {
  const line = (row: Row) =>
    COLUMNS.map((name) => `${JSON.stringify(name)}:${JSON.stringify(row[name])}`).join(',');
  return rows.map((row) => `{${line(row)}}\n`).join('');
}

function table(rows: readonly Row[], delimiter: string): string {
  return stringify([[...COLUMNS], ...rows.map((row) => COLUMNS.map((name) => row[name]))], { delimiter });
}

function parquet(rows: readonly Row[]): Buffer {
  const columnData = COLUMNS.map((name) => ({
    name,
    data: rows.map((row) => row[name]),
    type: 'STRING' as const,
  }));
  return Buffer.from(parquetWriteBuffer({ columnData }));
}

interface StoredTask {
  readonly key: string;
  readonly request_hash: string;
  readonly body: string;
}

function storedTasks(runName: string): StoredTask[] {
  return workspace.query<StoredTask>(
    `SELECT key, request_hash, body FROM tasks JOIN documents ON task_id = tasks.id
     WHERE run_id = (SELECT id FROM runs WHERE name = '${runName}') ORDER BY line`,
  );
}

describe('the same thousand documents', () => {
  const rows = reviews(1_000);

  it('give the same keys, requests, answers and joined rows in JSONL, CSV, TSV and Parquet', async () => {
    workspace.write('a.jsonl', jsonl(rows));
    workspace.write('b.csv', table(rows, ','));
    workspace.write('c.tsv', table(rows, '\t'));
    workspace.write('d.parquet', parquet(rows));
    const prompt = ['--prompt', '{{language}}/{{2026}}: {{text}}', '--concurrency', '64'];
    for (const name of ['a.jsonl', 'b.csv', 'c.tsv', 'd.parquet']) {
      expect(await run(name, ...prompt)).toMatchObject({ exitCode: 0 });
    }
    const answers = (name: string) =>
      workspace.readLines(`${name}.results.jsonl`).map(({ id, output }) => ({ id, output }));
    expect(answers('a')).toEqual(
      rows.map((row) => ({
        id: row['id'],
        output: answerTo(`${row['language']}/${row['2026']}: ${row['text']}`),
      })),
    );
    for (const name of ['b', 'c', 'd']) {
      expect(answers(name)).toEqual(answers('a'));
      expect(storedTasks(name)).toEqual(storedTasks('a'));
    }

    // The inputs are gone: what is joined comes from the store.
    for (const name of ['a.jsonl', 'b.csv', 'c.tsv', 'd.parquet']) {
      rmSync(workspace.path(name));
      expect(await command('results', name.slice(0, 1), '--join')).toMatchObject({ exitCode: 0 });
    }
    const expected = rows.map((row, index) => ({
      ...row,
      output: answers('a')[index]?.output,
      status: 'completed',
    }));
    expect(workspace.readLines<Row>('a.joined.jsonl')).toMatchObject(expected);
    expect(parse(workspace.read('b.joined.csv'), { columns: true })).toMatchObject(expected);
    expect(parse(workspace.read('c.joined.tsv'), { columns: true, delimiter: '\t' })).toMatchObject(expected);
    const file = readFileSync(workspace.path('d.joined.parquet'));
    expect(await parquetReadObjects({ file: Uint8Array.from(file).buffer })).toMatchObject(expected);
    for (const [name, delimiter] of [
      ['b.joined.csv', ','],
      ['c.joined.tsv', '\t'],
    ] as const) {
      expect(workspace.read(name).startsWith([...COLUMNS, 'output', 'status'].join(delimiter))).toBe(true);
    }
  });
});

describe('a table', () => {
  it('comes from standard input when its format is named', async () => {
    const end = await workspace.run(['run', '-', '--input-format', 'csv', '--base-url', simulator.url], {
      input: 'id;text\na;"one;\ntwo"\n',
    });
    expect(end.exitCode, end.stderr).toBe(0);
    expect(workspace.readLines('stdin.results.jsonl')).toMatchObject([
      { id: 'a', line: 2, output: answerTo('one;\ntwo') },
    ]);
    const { stdout } = await command('results', '--join', '-o', '-');
    expect(stdout.split('\n')[0]).toMatch(/^id;text;output;status;/);
  });

  it('with bad rows stops before any call, and names them; or sets them aside', async () => {
    workspace.write('in.csv', 'id,text\na,one\nb\nc,"x"y\nd,two\n');
    expect(await callsOf(() => run('in.csv'))).toBe(0);
    const { exitCode, stderr } = await run('in.csv');
    expect(exitCode).toBe(2);
    expect(stderr).toContain('line 3  1 value, where the header has 2 columns: id, text');
    expect(stderr).toContain('line 4  text goes on behind its closing quote');

    expect(await run('in.csv', '--skip-bad-lines')).toMatchObject({ exitCode: 0 });
    expect(workspace.readLines('in.results.jsonl').map(({ id }) => id)).toEqual(['a', 'd']);
    expect(workspace.readLines('in.rejects.jsonl')).toMatchObject([
      { line: 3, text: 'b' },
      { line: 4, text: 'c,"x"y' },
    ]);
  });

  it('whose header cannot be used stops before any call and leaves no run', async () => {
    workspace.write('in.csv', 'id,text,text\na,one,two\n');
    expect(await run('in.csv')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/more than one column text/),
    });
    expect(await command('status')).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(/no run/) });
  });

  it('that was edited sends its new and changed rows alone, and is joined in its new order', async () => {
    workspace.write('in.csv', 'id,text\na,one\nb,two\nc,three\n');
    await run('in.csv');
    workspace.write('in.csv', 'id,text,extra\nd,four,4\nc,three,3\na,one,1\n');
    expect(await callsOf(() => run('in.csv'))).toBe(1);
    await command('results', '--join');
    const joined = parse(workspace.read('in.joined.csv'), { columns: true }) as Row[];
    expect(joined.map(({ id, extra, output }) => ({ id, extra, output }))).toEqual([
      { id: 'd', extra: '4', output: answerTo('four') },
      { id: 'c', extra: '3', output: answerTo('three') },
      { id: 'a', extra: '1', output: answerTo('one') },
    ]);
  });

  it('is joined with all its rows while some have no answer yet', async () => {
    workspace.write('in.csv', 'id,text\na,one\nb,[[simulate:refuse]]\nc,[[simulate:unauthorized]]\nd,two\n');
    await run('in.csv', '--concurrency', '1');
    const { stderr } = await command('results', '--join');
    // The file is the run's own now.
    expect(await command('results', '--join')).toMatchObject({ exitCode: 0, stderr });
    expect(stderr).toMatch(/^4 documents of run 'in', 2 of them without an answer yet written to /);
    const joined = parse(workspace.read('in.joined.csv'), { columns: true }) as Row[];
    expect(joined.map(({ id, status, error }) => [id, status, error])).toEqual([
      ['a', 'completed', ''],
      ['b', 'failed', 'refused'],
      ['c', 'pending', ''],
      ['d', 'pending', ''],
    ]);
  });
});

describe('a SQLite database', () => {
  const ENGLISH = "SELECT id, text, big FROM reviews WHERE language = 'en' ORDER BY id";
  const GERMAN = "SELECT id, text, big FROM reviews WHERE language = 'de' ORDER BY id";
  const prompt = ['--prompt', '{{text}} {{big}}'];

  beforeEach(() => {
    const database = new Database(workspace.path('reviews.db'));
    database.exec(`CREATE TABLE reviews (id INTEGER PRIMARY KEY, text TEXT, language TEXT, big INTEGER, photo BLOB);
      INSERT INTO reviews VALUES (1, 'fine', 'en', 9007199254740993, NULL), (2, 'gut', 'de', 2, x'00'),
        (3, 'bad', 'en', 9007199254740995, x'00');`);
    database.close();
  });

  it('sends the rows of a query with all their digits, and goes on without it', async () => {
    expect(await run('reviews.db', '--query', ENGLISH, ...prompt)).toMatchObject({ exitCode: 0 });
    expect(workspace.readLines('reviews.results.jsonl')).toMatchObject([
      { id: 1, line: 1, output: answerTo('fine 9007199254740993') },
      { id: 3, line: 2, output: answerTo('bad 9007199254740995') },
    ]);
    const again = () => run('reviews.db', '--query', ENGLISH, ...prompt);
    expect(await callsOf(again)).toBe(0);

    rmSync(workspace.path('reviews.db'));
    expect(await command('resume', 'reviews')).toMatchObject({ exitCode: 0 });
    expect(await command('results', 'reviews', '--join')).toMatchObject({ exitCode: 0 });
    const joined = workspace.read('reviews.joined.jsonl').split('\n');
    expect(joined[0]).toMatch(/^\{"id":1,"text":"fine","big":9007199254740993,"output":"/);
    const elsewhere = await command('results', 'reviews', '--join', '-o', 'reviews.csv');
    expect(elsewhere).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('the input is a database'),
    });
  });

  it('with another query is another run, unless the run is named', async () => {
    expect(await run('reviews.db', '--query', ENGLISH, ...prompt)).toMatchObject({ exitCode: 0 });
    const german = ['reviews.db', '--query', GERMAN, ...prompt];
    const calls = await callsOf(async () => {
      const refused = await run(...german);
      expect(refused.exitCode).toBe(2);
      expect(refused.stderr).toContain(`Run 'reviews' of this database has another query: ${ENGLISH}`);
      expect(refused.stderr).toContain('--name reviews');
    });
    expect(calls).toBe(0);

    const own = ['--name', 'german', '-o', 'german.jsonl'];
    expect(await run(...german, ...own)).toMatchObject({ exitCode: 0 });
    expect(workspace.readLines('german.jsonl')).toMatchObject([{ id: 2, output: answerTo('gut 2') }]);
    // Each query finds its own run again.
    expect(await callsOf(() => run(...german, '-o', 'german.jsonl'))).toBe(0);
    expect(await callsOf(() => run('reviews.db', '--query', ENGLISH, ...prompt))).toBe(0);

    const named = await run('reviews.db', '--query', `${ENGLISH} LIMIT 1`, ...prompt, '--name', 'reviews');
    expect(named).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('1 gone') });
    // From here on the run asks what it was told last.
    const last = () => run('reviews.db', '--query', `${ENGLISH} LIMIT 1`, ...prompt);
    expect(await callsOf(last)).toBe(0);
  });

  it('stops before any call at a bad row or a wrong query, and leaves no run', async () => {
    const all = await run('reviews.db', '--query', 'SELECT * FROM reviews', ...prompt);
    expect(all).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(/line 2.*photo is a BLOB/) });
    for (const query of [[], ['--query', 'SELECT nope FROM reviews']]) {
      expect(await run('reviews.db', ...query, ...prompt)).toMatchObject({ exitCode: 2 });
    }
    expect(workspace.query('SELECT name FROM runs')).toEqual([]);
  });

  it('is looked at by check, estimate and a dry run too', async () => {
    const input = ['reviews.db', '--query', ENGLISH, '--prompt', '{{text}}'];
    expect(await command('check', ...input)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('2 documents'),
    });
    const estimated = await command('estimate', ...input, '--json');
    expect(JSON.parse(estimated.stdout)).toMatchObject({ documents: 2 });
    const dry = await command('run', ...input, '--dry-run');
    expect(dry).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('2 documents') });
  });
});

describe('text files', () => {
  beforeEach(() => {
    mkdirSync(workspace.path('notes'));
    writeFileSync(join(workspace.folder, 'notes', 'b.md'), 'Text B\n');
    writeFileSync(join(workspace.folder, 'notes', 'a.md'), 'Text A\n');
  });

  it('are a document each, of one run, whether a shell names them or a pattern does', async () => {
    expect(await run('notes/*.md', '--prompt', '{{name}}: {{text}}')).toMatchObject({ exitCode: 0 });
    expect(workspace.readLines('notes/notes.results.jsonl')).toMatchObject([
      { id: 'notes/a.md', line: 1, output: answerTo('a.md: Text A\n') },
      { id: 'notes/b.md', line: 2, output: answerTo('b.md: Text B\n') },
    ]);
    const again = () => run('notes/a.md', 'notes/b.md', '--prompt', '{{name}}: {{text}}');
    expect(await callsOf(again)).toBe(0);
    writeFileSync(join(workspace.folder, 'notes', 'aa.md'), 'Text AA\n');
    expect(await callsOf(() => run('notes/*', '--name', 'notes', '--prompt', '{{name}}: {{text}}'))).toBe(1);
    expect(workspace.readLines('notes/notes.results.jsonl').map(({ id }) => id)).toEqual([
      'notes/a.md',
      'notes/aa.md',
      'notes/b.md',
    ]);
  });

  it('that are no text are named, and can be set aside', async () => {
    writeFileSync(join(workspace.folder, 'notes', 'image.md'), Buffer.from([0x89, 0x50, 0]));
    const { exitCode, stderr } = await run('notes/*.md');
    expect(exitCode).toBe(2);
    expect(stderr).toContain('notes/image.md: a binary file: it holds a NUL byte');
    expect(await run('notes/*.md', '--skip-bad-lines')).toMatchObject({ exitCode: 0 });
    expect(workspace.readLines('notes/notes.rejects.jsonl')).toMatchObject([{ path: 'notes/image.md' }]);
  });

  it('go on from the store when they are gone, and are joined as JSON Lines', async () => {
    writeFileSync(join(workspace.folder, 'notes', 'c.md'), '[[simulate:unauthorized]]');
    expect(await run('notes/*.md', '--concurrency', '1')).toMatchObject({ exitCode: 4 });
    rmSync(workspace.path('notes'), { recursive: true });
    mkdirSync(workspace.path('notes'));
    await command('results', 'notes', '--join', '-o', 'joined.jsonl');
    expect(workspace.readLines<Row>('joined.jsonl')).toMatchObject([
      { id: 'notes/a.md', path: 'notes/a.md', name: 'a.md', text: 'Text A\n', status: 'completed' },
      { id: 'notes/b.md', status: 'completed' },
      { id: 'notes/c.md', status: 'pending', output: null },
    ]);
  });

  it('are looked at by check and estimate too', async () => {
    expect(await command('check', 'notes/*.md')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/2 documents/),
    });
    expect(await command('estimate', 'notes/a.md', 'notes/b.md')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/2 documents/),
    });
  });
});

describe('results in other shapes', () => {
  beforeEach(async () => {
    workspace.write('in.csv', 'id,text\na,one\nb,[[simulate:refuse]]\n');
    await run('in.csv');
  });

  it('are written as Parquet', async () => {
    expect(await command('results', '--format', 'parquet', '--only', 'all', '--include-input')).toMatchObject(
      { exitCode: 0 },
    );
    const file = Uint8Array.from(readFileSync(workspace.path('in.results.parquet'))).buffer;
    expect(await parquetReadObjects({ file })).toMatchObject([
      {
        id: 'a',
        line: 2n,
        status: 'completed',
        output: answerTo('one'),
        document: '{"id":"a","text":"one"}',
      },
      { id: 'b', line: 3n, status: 'failed', error_kind: 'refused', output: null },
    ]);
  });

  it.each([
    ['the input itself', ['--join', '-o', 'in.csv', '--force'], /in\.csv is the input itself/],
    ['the input itself, without --join', ['-o', 'in.csv', '--force'], /in\.csv is the input itself/],
    [
      'another format of the name',
      ['--join', '-o', 'out.parquet'],
      /The input with its answers is written as CSV where the input is CSV.* out\.parquet says otherwise/,
    ],
    ['a format beside --join', ['--join', '--format', 'csv'], /--join writes every document/],
    ['a choice beside --join', ['--join', '--only', 'failed'], /--join writes every document/],
    ['columns without a table', ['--csv-columns'], /--csv-columns is for tables of text/],
    ['a file of somebody else', ['--join', '-o', 'in.results.txt'], /exists and was not written by this run/],
  ])('are refused for %s', async (_name, flags, message) => {
    workspace.write('in.results.txt', 'mine');
    expect(await command('results', ...flags)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(message),
    });
    expect(workspace.read('in.csv')).toMatch(/^id,text\n/);
    expect(workspace.read('in.results.txt')).toBe('mine');
  });
});
