/** Every message of `check`, each pinned by a line of a fixture, and what the command does around them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FINDING_KINDS, type FindingExample, type FindingKind } from '../../src/runs/check/findings.js';
import { runInProcess } from '../support/in-process.js';
import { waitFor } from '../support/wait-for.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

const FIXTURES = join(import.meta.dirname, '..', '..', 'fixtures');
const CHECK_FIXTURES = join(FIXTURES, 'check');

interface CheckJson {
  readonly input: string;
  readonly ok: boolean;
  readonly lines: number;
  readonly documents: number;
  readonly bad_lines: number;
  readonly errors: number;
  readonly warnings: number;
  readonly models: readonly {
    readonly model: string;
    readonly documents: number;
    readonly context_window_tokens: number | null;
  }[];
  readonly problems: readonly {
    readonly kind: FindingKind;
    readonly severity: 'error' | 'warning';
    readonly count: number;
    readonly advice: string;
    readonly examples: readonly FindingExample[];
  }[];
}

let workspace: Workspace;

beforeEach(() => {
  workspace = new Workspace();
});

afterEach(() => workspace.remove());

async function check(...args: readonly string[]): Promise<{ exitCode: number | null; report: CheckJson }> {
  const end = await runInProcess(['check', ...args, '--json'], { folder: workspace.folder });
  if (end.stdout === '') throw new Error(`check says nothing: ${end.stderr}`);
  return { exitCode: end.exitCode, report: JSON.parse(end.stdout) as CheckJson };
}

/** `[line, kind, message]` in the order of lines; what is about the whole file has line 0. */
function found({ problems }: CheckJson): [number, FindingKind, string][] {
  return problems
    .flatMap(({ kind, examples }) =>
      examples.map(({ line, message }): [number, FindingKind, string] => [line ?? 0, kind, message]),
    )
    .sort(([one, oneKind], [other, otherKind]) => one - other || oneKind.localeCompare(otherKind));
}

interface FixtureCase {
  readonly name: string;
  readonly args: readonly string[];
  readonly exitCode: number;
  readonly documents: number;
  readonly found: readonly (readonly [line: number, kind: FindingKind, message: string])[];
}

const CASES: readonly FixtureCase[] = [
  {
    name: 'bad-lines.jsonl',
    args: [],
    exitCode: 2,
    documents: 8,
    found: [
      [5, 'not_json', 'not JSON: expected a value at character 1, found "t"'],
      [6, 'not_json', 'not JSON: the string that begins at character 24 is not closed'],
      [7, 'not_json', 'not JSON: expected a field name in double quotes at character 52, found "}"'],
      [8, 'not_json', `not JSON: expected a field name in double quotes at character 2, found "'"`],
      [9, 'not_an_object', 'a JSON array, where each line must be one JSON object'],
      [10, 'not_an_object', 'a string, where each line must be one JSON object'],
      [11, 'not_an_object', 'a number, where each line must be one JSON object'],
      [12, 'not_utf8', 'not valid UTF-8 at byte 34 of the line'],
      [13, 'not_utf8', 'not valid UTF-8 at byte 32 of the line'],
      [
        15,
        'lone_surrogate',
        'text holds half of a surrogate pair (such as \\ud83d alone), which is no character; remove it',
      ],
      [18, 'number_too_large', 'seed is an integer beyond 2^53 and would be rounded; write it as a string'],
      [19, 'number_too_large', 'price is a number beyond all range; write it as a string'],
      [20, 'unusable_id', 'the id field id is empty'],
      [21, 'unusable_id', 'the id field id must be a string or a number, not an object'],
      [
        22,
        'missing_field',
        "none of the fields prompt, text, content, document, input is a string; the fields are: id, stars; name the one to send with --prompt '…{{field}}…'",
      ],
      [23, 'empty_message', 'the field text, which is the message, is empty'],
      [
        24,
        'unusable_request',
        'url "/v1/images/generations" is not supported; only /v1/chat/completions, /v1/responses, /v1/embeddings, /v1/completions, /v1/moderations are',
      ],
      [25, 'unusable_request', 'body: stream must be left out: an answer is kept whole or not at all'],
      [27, 'not_json', 'not JSON: a control character in a string at character 26 must be escaped'],
    ],
  },
  {
    name: 'check/records.jsonl',
    args: ['--prompt', '{{title}}{{text}}', '--id-field', 'sku', '--max-line-bytes', '250'],
    exitCode: 2,
    documents: 2,
    found: [
      [2, 'missing_field', "the template's field title is missing; the fields are: sku, text"],
      [3, 'empty_message', 'the rendered prompt is empty'],
      [4, 'unusable_id', 'the id field sku (--id-field) is missing; the fields are: title, text'],
      [5, 'unusable_id', 'the id field sku holds a NUL character'],
      [6, 'unusable_id', 'the id field sku must be a string or a number, not a list'],
      [7, 'line_too_long', '346 bytes long, over the cap of 250 (--max-line-bytes)'],
    ],
  },
  {
    name: 'check/requests.jsonl',
    args: [],
    exitCode: 2,
    documents: 1,
    found: [
      [2, 'unusable_request', 'messages must be a list of at least one message'],
      [3, 'unusable_request', 'messages must be a list of at least one message'],
      [4, 'unusable_request', 'a message must be an object with a role'],
      [5, 'unusable_request', 'model must be the name of a model'],
      [6, 'unusable_request', 'n must be 1: one answer a document is kept'],
      [7, 'unusable_request', 'stream must be left out: an answer is kept whole or not at all'],
      [8, 'unusable_request', 'prompt must be a string, a list of strings, or tokens as whole numbers'],
      [9, 'empty_message', 'prompt is empty'],
      [10, 'empty_message', 'input is empty'],
      [11, 'unusable_request', 'priority must be a whole number, not "urgent"'],
      [12, 'number_too_large', 'seed is an integer beyond 2^53 and would be rounded; write it as a string'],
      [13, 'not_json', 'nested too deeply'],
    ],
  },
  {
    name: 'check/batch.jsonl',
    args: [],
    exitCode: 2,
    documents: 10,
    found: [
      [1, 'batch_endpoints', '/v1/chat/completions on 8 lines, here first'],
      [1, 'batch_models', 'gpt-4o-mini on 9 lines, here first'],
      [2, 'batch_id_repeated', 'custom_id "first" is on line 1 too'],
      [3, 'batch_id_repeated', 'custom_id "first" is on line 1 too'],
      [4, 'repeated_request', 'sends the same as line 2'],
      [5, 'batch_models', 'gpt-4o on 1 line, here first'],
      [6, 'batch_endpoints', '/chat/completions on 1 line, here first'],
      [7, 'batch_id_too_long', 'custom_id is 75 characters long'],
      [8, 'batch_id_not_text', 'custom_id 7 is no string'],
      [9, 'batch_id_missing', 'has no custom_id'],
      [10, 'batch_field_missing', 'has no method and no url'],
      [
        11,
        'unusable_request',
        'url "/v1/images/generations" is not supported; only /v1/chat/completions, /v1/responses, /v1/embeddings, /v1/completions, /v1/moderations are',
      ],
      [12, 'unusable_request', 'method "GET" is not supported; only POST is'],
      [13, 'unusable_request', 'body has no messages'],
      [14, 'unusable_request', 'body: a message must be an object with a role'],
    ],
  },
  {
    name: 'check/lengths.jsonl',
    args: ['--prices', join(CHECK_FIXTURES, 'prices.json'), '--tpm', '100'],
    exitCode: 2,
    documents: 7,
    found: [
      [2, 'over_context', '68 tokens, where gpt-4o-mini takes 48'],
      [3, 'over_context', '128 tokens, where gpt-4o-mini takes 48'],
      [3, 'over_tokens_per_minute', '128 tokens, where --tpm lets 100 through in a minute'],
      [4, 'over_context_with_cap', '32 tokens and an answer of up to 20, where gpt-4o-mini takes 48 in all'],
      [5, 'over_output_limit', 'asks for up to 30 tokens of output, where gpt-4o-mini gives 24 at most'],
      [6, 'over_context', 'about 68 tokens, where our-model takes 48'],
    ],
  },
  {
    name: 'check/table.csv',
    args: [],
    exitCode: 2,
    documents: 1,
    found: [
      [3, 'unreadable_line', '4 values, where the header has 3 columns: id, text, stars'],
      [
        4,
        'unreadable_line',
        'text goes on behind its closing quote; write a quote inside a quoted value twice',
      ],
    ],
  },
  {
    name: 'check/images.jsonl',
    args: ['--prompt', '{{image photo}}'],
    exitCode: 2,
    documents: 1,
    found: [
      [2, 'unusable_image', 'the image field photo is empty'],
      [3, 'unusable_image', 'the image field photo is empty'],
      [4, 'unusable_image', 'the image field photo is empty'],
      [
        5,
        'unusable_image',
        'the image field photo must be a path, an http(s) URL, a data: URL or a list of these',
      ],
      [
        6,
        'unusable_image',
        'the image field photo.1 must be a path, an http(s) URL, a data: URL or a list of these',
      ],
      [
        7,
        'unusable_image',
        `the image field photo names ${join(CHECK_FIXTURES, 'none.png')}, which does not exist`,
      ],
      [
        8,
        'unusable_image',
        `the image field photo names ${join(CHECK_FIXTURES, 'images.jsonl')}, which is no PNG, JPEG, GIF, WebP or PDF`,
      ],
      [9, 'unusable_image', `the image field photo names ${CHECK_FIXTURES}, which is a folder`],
      [10, 'missing_field', "the template's field photo is missing; the fields are: id"],
    ],
  },
  {
    name: 'check/repeats.jsonl',
    args: ['--prompt', '{{text}}', '--requests-as-they-are'],
    exitCode: 0,
    documents: 8,
    found: [
      [3, 'repeated_document', 'the same as line 1'],
      [4, 'repeated_id', 'has the id of line 1, but another request'],
      [5, 'repeated_request', 'sends the same as line 2'],
      [7, 'repeated_document', 'the same as line 6'],
      [8, 'template_unused', 'is a whole request, for which --prompt is not used'],
    ],
  },
  {
    name: 'check/remarks.jsonl',
    args: ['--prompt', '{% if note %}{{text}}{% endif %}', '--requests-as-they-are'],
    exitCode: 0,
    documents: 3,
    found: [
      [1, 'foreign_template', '{% if note %} is sent as it stands'],
      [2, 'empty_field', 'text is empty or null'],
      [3, 'assistant_last', 'ends with a message of the assistant'],
      [3, 'template_unused', 'is a whole request, for which --prompt is not used'],
    ],
  },
];

describe('what is found', () => {
  it.each(CASES)('in $name', async ({ name, args, exitCode, documents, found: expected }) => {
    const end = await check(join(FIXTURES, name), ...args);
    expect(found(end.report)).toEqual(expected);
    expect(end.exitCode).toBe(exitCode);
    expect(end.report).toMatchObject({ documents, ok: exitCode === 0 });
  });

  it('is of every kind there is, but for the two that take a large file', () => {
    const pinned = new Set(CASES.flatMap((each) => each.found.map(([, kind]) => kind)));
    expect(FINDING_KINDS.filter((kind) => !pinned.has(kind))).toEqual(['batch_lines', 'batch_bytes']);
  });

  it.each(['reviews.jsonl', 'requests.jsonl', 'failures.jsonl'])('in %s is nothing', async (name) => {
    const { exitCode, report } = await check(join(FIXTURES, name));
    expect(report.problems).toEqual([]);
    expect(exitCode).toBe(0);
  });

  it('of a Batch API file is only what a Batch API would mind', async () => {
    const { report } = await check(join(FIXTURES, 'batch-api.jsonl'));
    expect(found(report)).toEqual([[8, 'batch_id_repeated', 'custom_id "sentiment-2" is on line 2 too']]);
  });

  it('of 50,001 lines of a Batch API file is one too many', async () => {
    const line = (id: number): string =>
      `{"custom_id":"${id}","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"${id}"}]}}\n`;
    workspace.write('batch.jsonl', Array.from({ length: 50_001 }, (_, id) => line(id)).join(''));
    const { exitCode, report } = await check('batch.jsonl');
    expect(found(report)).toEqual([[0, 'batch_lines', '50,001 lines, where 50,000 are taken']]);
    expect(exitCode).toBe(0);
  });

  it('uses the published context window of a model and its own tokenizer', async () => {
    // A token each, and seven for the message's framing and role.
    const words = (count: number): string => ' a'.repeat(count);
    workspace.writeDocuments('long.jsonl', [
      { id: 'fits', text: words(8_185) },
      { id: 'does-not', text: words(8_186) },
    ]);
    const { report } = await check('long.jsonl', '--model', 'gpt-4');
    expect(found(report)).toEqual([[2, 'over_context', '8,193 tokens, where gpt-4 takes 8,192']]);
    expect(report.models).toMatchObject([{ model: 'gpt-4', documents: 2, context_window_tokens: 8_192 }]);
  });

  it('counts a system message, parameters and tools to the length', async () => {
    workspace.writeDocuments('short.jsonl', [{ id: 'a', text: 'Name a river.' }]);
    const system = 'word '.repeat(9_000);
    const { report } = await check('short.jsonl', '--model', 'gpt-4', '--system', system);
    expect(report.problems.map(({ kind }) => kind)).toEqual(['over_context']);
    const tool = { type: 'function', function: { name: 'look_up', description: system } };
    const tools = await check(
      'short.jsonl',
      '--model',
      'gpt-4',
      '--param',
      `tools=${JSON.stringify([tool])}`,
    );
    expect(tools.report.problems.map(({ kind }) => kind)).toEqual(['over_context']);
  });

  it('of several files is told by their paths', async () => {
    workspace.write('good.md', 'The kettle is fine.');
    workspace.write('bad.md', new Uint8Array([0x63, 0x61, 0x66, 0xe9]));
    workspace.write('binary.md', 'a\u0000b');
    const { exitCode, report } = await check('good.md', 'bad.md', 'binary.md');
    const paths = report.problems.flatMap(({ kind, examples }) => examples.map(({ place }) => [kind, place]));
    expect(paths).toEqual([
      ['not_utf8', 'bad.md'],
      ['unreadable_line', 'binary.md'],
    ]);
    expect(exitCode).toBe(2);
    const page = await runInProcess(['check', 'good.md', 'bad.md'], { folder: workspace.folder });
    expect(page.stdout).toContain('    bad.md  not valid UTF-8 at byte 4 of the file');
  });

  it('keeps whole numbers beyond 2^53 in records and ids, where they do no harm', async () => {
    workspace.write('large.jsonl', '{"id":9007199254740993,"text":"a","metadata":{"n":9007199254740995}}\n');
    const { exitCode, report } = await check('large.jsonl');
    expect(report.problems).toEqual([]);
    expect(exitCode).toBe(0);
  });
});

describe('the command', () => {
  it('shows twenty examples of a kind and the number of all', async () => {
    workspace.write('many.jsonl', `{"text":"fine"}\n${'no JSON\n'.repeat(25)}`);
    const { report } = await check('many.jsonl');
    expect(report).toMatchObject({ lines: 26, documents: 1, bad_lines: 25, errors: 25, warnings: 0 });
    expect(report.problems[0]).toMatchObject({ kind: 'not_json', severity: 'error', count: 25 });
    expect(report.problems[0]?.examples.map(({ line }) => line)).toEqual(
      Array.from({ length: 20 }, (_, index) => index + 2),
    );
    const page = await runInProcess(['check', 'many.jsonl'], { folder: workspace.folder });
    expect(page.stdout).toContain('✗ 25 lines are not JSON');
    expect(page.stdout).toContain('… and 5 more');
    expect(page.exitCode).toBe(2);
  });

  it('says so when all is well, and nothing under --quiet', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    const end = await runInProcess(['check', 'docs.jsonl'], { folder: workspace.folder });
    expect(end).toMatchObject({ exitCode: 0, stderr: '' });
    expect(end.stdout).toBe(
      'docs.jsonl: 3 lines, 3 documents\n\n✓ no problem found: a run would send all 3 documents\n',
    );
    const quiet = await runInProcess(['check', 'docs.jsonl', '--quiet'], { folder: workspace.folder });
    expect(quiet).toEqual({ exitCode: 0, stdout: '', stderr: '' });
  });

  it('calls nobody, needs no key and leaves nothing behind', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    const end = await workspace.run(['check', 'docs.jsonl', '--base-url', 'http://127.0.0.1:1/v1']);
    expect(end.exitCode, end.stderr).toBe(0);
    expect(readdirSync(workspace.folder)).toEqual(['docs.jsonl']);
  });

  it('takes the command line of a run', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    const args = '--rpm 5 --tpm 9k --concurrency auto --max-attempts 2 --db other.db --api-key-env MY_KEY';
    const { exitCode } = await check('docs.jsonl', ...args.split(' '));
    expect(exitCode).toBe(0);
    expect(readdirSync(workspace.folder)).toEqual(['docs.jsonl']);
  });

  it('reads standard input', async () => {
    const end = await workspace.run(['check', '-', '--json'], { input: '{"text":"a"}\nnope\n' });
    expect(end.exitCode).toBe(2);
    expect(JSON.parse(end.stdout)).toMatchObject({ input: 'standard input', lines: 2, bad_lines: 1 });
  });

  it('stops at Ctrl-C and says nothing of what it has not seen', async () => {
    const program = workspace.start(['check', '-'], { keepStdinOpen: true });
    program.child.stdin?.write('{"text":"a"}\n');
    // The sign of progress comes after a second of reading.
    await waitFor('the progress line', () => program.stderr().includes('reading'));
    program.kill('SIGINT');
    const end = await program.ended;
    expect(end).toMatchObject({ exitCode: 130, stdout: '' });
  });

  it.each([
    ['a missing file', ['none.jsonl'], 'none.jsonl'],
    ['a template that is none', ['docs.jsonl', '--prompt', '{{text'], 'does not close it'],
    ['a field that no document has', ['docs.jsonl', '--prompt', 'hello'], '{{'],
    ['a price file that is none', ['docs.jsonl', '--prices', 'none.json'], 'none.json'],
  ])('refuses %s with exit code 2', async (_, args, says) => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    const end = await runInProcess(['check', ...args], { folder: workspace.folder });
    expect(end).toMatchObject({ exitCode: 2, stdout: '' });
    expect(end.stderr).toContain(says);
  });
});

describe('the fixtures of check', () => {
  it('are all looked at', () => {
    const looked = CASES.map(({ name }) => name.replace('check/', ''));
    const files = readdirSync(CHECK_FIXTURES).filter((name) => name !== 'prices.json');
    expect(files.filter((name) => !looked.includes(name))).toEqual([]);
    for (const file of files) expect(readFileSync(join(CHECK_FIXTURES, file), 'utf8')).toMatch(/\n$/);
  });
});
