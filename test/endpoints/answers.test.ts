/** Answers and error bodies of each endpoint, as servers give them and as none should, through the provider and a real socket. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { EndpointName } from '../../src/core/endpoint-name.js';
import type { JsonObject } from '../../src/core/json.js';
import type { TokenUsage } from '../../src/core/usage.js';
import { openProvider, startServer } from '../provider/openai/loopback.js';

interface RecordedAnswer {
  readonly what: string;
  /** Default 200. */
  readonly status?: number;
  readonly body: JsonObject;
  /** Default: a text where the endpoint has its content. */
  readonly asked?: JsonObject;
  /** What is read of it: an output and why it ended, or a kind of failure. */
  readonly output?: unknown;
  readonly finish?: string;
  readonly details?: JsonObject;
  readonly kind?: string;
  readonly message?: string;
  readonly partial?: string;
  /** Input, output, cached and reasoning tokens. */
  readonly usage: readonly [number, number, number, number] | null;
}

const CONTENT_FIELDS = { responses: 'input', completions: 'prompt', moderations: 'input' } as const;

function recorded(endpoint: EndpointName): RecordedAnswer[] {
  const file = new URL(`../../fixtures/answers/${endpoint}.jsonl`, import.meta.url);
  return readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as RecordedAnswer);
}

const OPTIONS = { timeoutMs: 10_000, signal: new AbortController().signal };

describe.each(Object.entries(CONTENT_FIELDS))('%s', (endpoint, contentField) => {
  it.each(recorded(endpoint as EndpointName).map((each) => [each.what, each] as const))(
    'answered with %s',
    async (_what, { status = 200, body, asked, usage, ...reads }) => {
      const server = await startServer((_request, response) => {
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(JSON.stringify(body));
      });
      const bodyJson = JSON.stringify(asked ?? { [contentField]: 'A text.' });
      const request = { endpoint: endpoint as EndpointName, bodyJson, parts: 1 };
      const reply = await openProvider(server.baseUrl).send(request, OPTIONS);
      expect(server.requests.map(({ url }) => url)).toEqual([`/v1/${endpoint}`]);
      if ('aborted' in reply) throw new Error('aborted');
      expect(countsOf(reply.usage)).toEqual(usage);
      if (!reply.ok) {
        expect(reply.failure).toMatchObject({
          kind: reads.kind,
          message: expect.stringContaining(reads.message ?? ''),
        });
        const partial = reply.failure.partialOutputJson;
        if (reads.partial !== undefined) expect(partial && JSON.parse(partial)).toBe(reads.partial);
        return;
      }
      const [part] = reply.parts;
      if (part?.ok !== true) throw new Error('not answered');
      expect({ output: JSON.parse(part.outputJson), finish: part.finishReason }).toEqual({
        output: reads.output,
        finish: reads.finish,
      });
      expect(JSON.parse(part.responseJson ?? '')).toEqual(body);
      if (reads.details !== undefined)
        expect(JSON.parse(part.detailsJson ?? '')).toMatchObject(reads.details);
    },
  );
});

function countsOf(usage: TokenUsage | null) {
  return usage && [usage.inputTokens, usage.outputTokens, usage.cachedTokens, usage.reasoningTokens];
}

it('a response keeps what it holds beside its text, as it came', async () => {
  const item = '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA","weight":1.0}';
  const message = '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Yes."}]}';
  const server = await startServer((_request, response) =>
    response.end(`{"status":"completed","output":[${item}, ${message}]}`),
  );
  const request = { endpoint: 'responses' as const, bodyJson: '{"input":"?"}', parts: 1 };
  const reply = await openProvider(server.baseUrl).send(request, OPTIONS);
  if ('aborted' in reply || !reply.ok) throw new Error('not answered');
  expect(reply.parts).toMatchObject([{ ok: true, detailsJson: `{"items":[${item}, ${message}]}` }]);
});
