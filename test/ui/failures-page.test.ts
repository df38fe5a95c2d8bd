import { describe, expect, it } from 'vitest';
import type { FailureKind } from '../../src/core/failure.js';
import { FAILURE_KINDS } from '../../src/core/failure.js';
import type { ResultRow } from '../../src/core/result-row.js';
import { FailureGrouping } from '../../src/runs/failure-groups.js';
import { PLAIN_APPEARANCE } from '../../src/ui/colours.js';
import { FAILURE_ADVICE } from '../../src/ui/failure-advice.js';
import { renderFailures } from '../../src/ui/failures-page.js';

function failed(line: number, kind: FailureKind, message: string, code: string | null = null): ResultRow {
  return {
    taskId: line,
    line,
    key: `doc-${line}`,
    state: 'failed',
    attempts: 1,
    settledAtMs: 0,
    result: null,
    error: {
      kind,
      message,
      httpStatus: code === null ? null : 400,
      code,
      requestId: code === null ? null : 'req_1',
      partialOutputJson: null,
    },
    usage: null,
    costMicroUsd: null,
    latencyMs: null,
    requestId: null,
    sharedFrom: null,
    metadataJson: null,
    body: null,
  };
}

describe('failures', () => {
  it('are grouped by kind over pages, the largest group first, each with its first example', () => {
    const grouping = new FailureGrouping();
    grouping.add([failed(1, 'timeout', 'no answer'), failed(2, 'invalid_request', 'a', 'bad_a')]);
    grouping.add([failed(3, 'invalid_request', 'b', 'bad_b'), failed(4, 'invalid_request', 'b', 'bad_b')]);
    expect(grouping.groups()).toMatchObject([
      {
        kind: 'invalid_request',
        count: 3,
        example: { key: 'doc-2', line: 2, error: { message: 'a' } },
        codes: [
          { code: 'bad_b', count: 2 },
          { code: 'bad_a', count: 1 },
        ],
      },
      { kind: 'timeout', count: 1, example: { line: 1 }, codes: [] },
    ]);
  });

  it('are shown with what happened, an example, the request id and what to do', () => {
    const grouping = new FailureGrouping();
    grouping.add([
      failed(
        17,
        'invalid_request',
        "Unsupported value: 'temperature' does not\nsupport 0.2 with this model.",
        'unsupported_value',
      ),
      failed(1_204, 'timeout', 'no complete answer within 300 s'),
      failed(1_205, 'timeout', 'no complete answer within 300 s'),
    ]);
    expect(
      renderFailures('reviews', grouping.groups(), { ...PLAIN_APPEARANCE, columns: 76 }).join('\n'),
    ).toBe(
      `3 documents of reviews failed.

timeout  2 documents
  what     no complete answer came within --timeout
  example  line 1,204, doc-1204
  message  no complete answer within 300 s
  try      raise --timeout, or ask for shorter answers with --param
           max_tokens=N
  then     llm-batch retry reviews --kind timeout

invalid_request  1 document
  what        the server does not accept these requests
  example     line 17, doc-17
  message     Unsupported value: 'temperature' does not support 0.2 with
              this model. (HTTP 400)
  codes       unsupported_value 1
  request id  req_1
  try         leave temperature out of --param and of the documents: this
              model takes its own value alone`,
    );
  });

  it('cannot steer the terminal with what a server said', () => {
    const grouping = new FailureGrouping();
    grouping.add([failed(1, 'bad_output', '\x1b[2J\x1b]0;title\x07', '\x1b[31m')]);
    const page = renderFailures('reviews', grouping.groups(), { ...PLAIN_APPEARANCE, columns: 80 }).join('');
    expect(page).toContain('�[2J');
    for (const control of ['\x1b', '\x07']) expect(page).not.toContain(control);
  });

  it('may be none', () => {
    expect(renderFailures('reviews', [], { ...PLAIN_APPEARANCE, columns: 80 })).toEqual([
      'No document of reviews has failed.',
    ]);
  });

  it('of every kind come with advice', () => {
    for (const kind of FAILURE_KINDS) {
      expect(FAILURE_ADVICE[kind].meaning).not.toBe('');
      expect(FAILURE_ADVICE[kind].advice).not.toBe('');
    }
  });
});
