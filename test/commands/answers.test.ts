/** What an answer holds reaches the user as it came: in the lines of results, in a table, and as a Batch API file. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startServer } from '../provider/openai/loopback.js';
import { jsonLines } from '../support/program.js';
import { Workspace } from '../support/workspace.js';

type Line = Readonly<Record<string, unknown>>;
interface BatchLine {
  readonly custom_id: string;
  readonly response: { readonly body: unknown } | null;
}

let workspace: Workspace;

beforeEach(() => {
  workspace = new Workspace();
});

afterEach(() => workspace.remove());

const CALLS = '[{"id":"call_1","type":"function","function":{"name":"look_up","arguments":"{\\"n\\":1}"}}]';
const LOGPROBS =
  '{"content":[{"token":"four","logprob":-1.0e-07,"bytes":[102,111],"top_logprobs":[]}],"refusal":null}';
const MESSAGES = {
  text: '{"role":"assistant","content":"four","refusal":null,"annotations":[]}',
  calls: `{"role":"assistant","content":null,"tool_calls":${CALLS}}`,
  'calls and text': `{"role":"assistant","content":"Let me see.","tool_calls":${CALLS}}`,
  annotations:
    '{"role":"assistant","content":"four","annotations":[{"type":"url_citation","url_citation":{"url":"u"}}]}',
  reasoning: '{"role":"assistant","content":"four","reasoning_content":"two and two"}',
  sound: '{"role":"assistant","content":null,"audio":{"id":"a","data":"UklGRg==","transcript":"four"}}',
};

/** A body as a server might write it: with spaces, a number that a double cannot hold, and fields of its own. */
function body(choices: string): string {
  return (
    `{"id": "chatcmpl-9", "created": 1795992837, "model": "m-1", "system_fingerprint": "fp_7", "serial": 9007199254740995,\n` +
    ` "choices": [${choices}], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7,` +
    ' "completion_tokens_details": {"reasoning_tokens": 1, "audio_tokens": 0}}, "x_server": {"seed": 1.0}}'
  );
}

function choice(message: string, more = '"logprobs":null,"finish_reason":"stop"', index = 0): string {
  return `{"index":${index},"message":${message},${more}}`;
}

const BODIES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(MESSAGES).map(([name, message]) => [name, body(choice(message))])),
  logprobs: body(choice(MESSAGES.text, `"logprobs":${LOGPROBS},"finish_reason":"stop"`)),
  'two choices': body(`${choice(MESSAGES.text)},${choice(MESSAGES.text, '"finish_reason":"stop"', 1)}`),
};

const CUT: Readonly<Record<string, string>> = {
  'a call': body(choice(MESSAGES.calls, '"finish_reason":"length"')),
  thinking: body(
    choice('{"role":"assistant","content":"","reasoning":"two and"}', '"finish_reason":"length"'),
  ),
};

/** Answers each document with the body of its name. */
async function serve(bodies: Readonly<Record<string, string | Buffer>>): Promise<string[]> {
  const server = await startServer((request, response) => {
    const { messages } = JSON.parse(request.body.toString()) as { messages: { content: string }[] };
    response.writeHead(200, { 'content-type': 'application/json', 'x-request-id': 'req_1' });
    response.end(bodies[messages[0]?.content ?? '']);
  });
  return ['--base-url', server.baseUrl, '--max-attempts', '1', '--no-guard'];
}

function documentsOf(bodies: object): string {
  return workspace.writeDocuments(
    'docs.jsonl',
    Object.keys(bodies).map((name) => ({ id: name, text: name })),
  );
}

async function linesOf(...args: string[]): Promise<Line[]> {
  return jsonLines<Line>((await workspace.run(args)).stdout);
}

describe('an answer that is more than a text', () => {
  it('is given back as it came, in every shape of a results file', async () => {
    const flags = await serve(BODIES);
    const run = await workspace.run(['run', documentsOf(BODIES), ...flags]);
    expect(run.exitCode).toBe(0);

    const batch = await workspace.run(['results', '--format', 'openai', '-o', '-']);
    for (const { custom_id, response } of jsonLines<BatchLine>(batch.stdout)) {
      expect(response?.body, custom_id).toEqual(JSON.parse(BODIES[custom_id] ?? ''));
    }
    expect(batch.stdout).toContain('"serial": 9007199254740995,');
    expect(jsonLines(batch.stdout)).toHaveLength(Object.keys(BODIES).length);

    const text = { output: 'four' };
    const message = (name: keyof typeof MESSAGES) => JSON.parse(MESSAGES[name]) as Line;
    expect(workspace.readLines<Line>('docs.results.jsonl')).toMatchObject([
      { id: 'text', ...text },
      { id: 'calls', output: CALLS, message: message('calls') },
      { id: 'calls and text', output: 'Let me see.', message: message('calls and text') },
      { id: 'annotations', ...text, message: message('annotations') },
      { id: 'reasoning', ...text, message: message('reasoning'), reasoning: 'two and two' },
      { id: 'sound', ...text, message: message('sound') },
      { id: 'logprobs', ...text, message: message('text'), logprobs: JSON.parse(LOGPROBS) },
      { id: 'two choices', ...text, message: message('text'), choices: [{ index: 0 }, { index: 1 }] },
    ]);
    const [plain] = workspace.readLines<Line>('docs.results.jsonl');
    expect(plain).not.toHaveProperty('message');

    const table = (await workspace.run(['results', '--format', 'csv', '-o', '-'])).stdout;
    expect(table.split('\n')[0]).toMatch(/,reasoning,message,logprobs,choices,items$/);
    expect(table).toContain(
      ',two and two,"{""role"":""assistant"",""content"":""four"",""reasoning_content""',
    );
  });

  it('goes with its documents where they share it', async () => {
    const flags = await serve(BODIES);
    workspace.writeDocuments('docs.jsonl', [
      { id: 'one', text: 'reasoning' },
      { id: 'other', text: 'reasoning' },
    ]);
    expect((await workspace.run(['run', 'docs.jsonl', '--dedupe', ...flags])).exitCode).toBe(0);
    const [, other] = workspace.readLines<Line>('docs.results.jsonl');
    expect(other).toMatchObject({ shared_from: 'run', reasoning: 'two and two' });
    const batch = await linesOf('results', '--format', 'openai', '-o', '-');
    expect(batch.map(({ response }) => (response as { body: unknown }).body)).toEqual([
      JSON.parse(BODIES['reasoning'] ?? ''),
      JSON.parse(BODIES['reasoning'] ?? ''),
    ]);
  });

  it('is kept where it was cut off, and the reason says what was', async () => {
    const flags = await serve(CUT);
    expect((await workspace.run(['run', documentsOf(CUT), ...flags])).exitCode).toBe(3);
    expect(workspace.readLines<Line>('docs.errors.jsonl')).toMatchObject([
      {
        error: {
          kind: 'truncated',
          message: 'The tool call was cut off at the length limit',
          partial_output: JSON.parse(MESSAGES.calls),
        },
      },
      {
        error: {
          kind: 'truncated',
          message: 'There was only reasoning, no text, before the length limit',
          partial_output: { role: 'assistant', content: '', reasoning: 'two and' },
        },
      },
    ]);
  });

  it('is no answer where its bytes are not UTF-8, and what could be read is kept', async () => {
    const latin1 = Buffer.from(body(choice('{"content":"café"}')), 'latin1');
    const flags = await serve({ latin1 });
    expect((await workspace.run(['run', documentsOf({ latin1 }), ...flags])).exitCode).toBe(3);
    expect(workspace.readLines<Line>('docs.errors.jsonl')).toMatchObject([
      {
        error: {
          kind: 'bad_output',
          message: expect.stringContaining('not UTF-8'),
          partial_output: 'caf\ufffd',
        },
      },
    ]);
  });
});

describe('a line of results', () => {
  const DOCUMENTS = [
    '{"id": 1, "text": "text", "metadata": {"serial": 9007199254740995, "share": 1.0}}',
    '{"id": "1", "text": "text", "metadata": null}',
    '{"id": 9007199254740995, "text": "text"}',
    '{"custom_id": -1.5, "text": "reasoning", "metadata": [ ]}',
    '{"id": 7, "text": "thinking", "metadata": "m"}',
  ];
  const ENDS = [
    ['1', ',"metadata":{"serial": 9007199254740995, "share": 1.0}}'],
    ['"1"', '"}'],
    ['9007199254740995', '"}'],
    ['-1.5', ',"metadata":[ ]}'],
  ];

  function expectEnds(stdout: string): void {
    const byId = new Map(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => [/^\{"id":([^,]+),/.exec(line)?.[1], line]),
    );
    for (const [id = '', end = ''] of ENDS) expect(byId.get(id)?.slice(-end.length), id).toBe(end);
    expect(byId.size).toBe(ENDS.length);
  }

  it.each([
    ['called', []],
    ['shared', ['--dedupe']],
  ])('is the same where it is streamed and where it is written, %s', async (_how, how) => {
    const flags = await serve({ ...BODIES, ...CUT });
    workspace.write('docs.jsonl', `${DOCUMENTS.join('\n')}\n`);
    const streamed = await workspace.run(['run', 'docs.jsonl', '-o', '-', ...how, ...flags]);
    expect(streamed.exitCode).toBe(3);
    expectEnds(streamed.stdout);
    const written = await workspace.run(['results', '-o', '-']);
    expect(streamed.stdout.split('\n').sort()).toEqual(written.stdout.split('\n').sort());
    const failed = await workspace.run(['results', '--only', 'failed', '-o', '-']);
    expect(failed.stdout).toMatch(/^\{"id":7,.*,"metadata":"m"\}\n$/);
    const failures = await workspace.run(['failures', '--json']);
    expect(JSON.parse(failures.stdout)).toMatchObject({ failures: [{ example: { id: 7 } }] });
  });

  it('shows the type that the id has now, and answers are not asked for again for it', async () => {
    const flags = await serve(BODIES);
    workspace.write('docs.jsonl', '{"id": "1", "text": "text"}\n');
    expect((await workspace.run(['run', 'docs.jsonl', ...flags])).exitCode).toBe(0);
    workspace.write('docs.jsonl', '{"id": 1, "text": "text"}\n');
    const again = await workspace.run(['run', 'docs.jsonl', ...flags]);
    expect(again.exitCode).toBe(0);
    expect(workspace.readLines<Line>('docs.results.jsonl')).toMatchObject([{ id: 1 }]);
    expect(await workspace.status()).toMatchObject({ calls: { made: 1 } });
  });
});
