/** What `--log-json` says of the events of a run. */
import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import type { RunEvent } from '../../src/core/event.js';
import type { ProviderFailure } from '../../src/core/failure.js';
import { EMPTY_SNAPSHOT } from '../../src/core/progress-snapshot.js';
import { structuredLog } from '../../src/telemetry/structured-log.js';
import { callEnded, callStarted } from '../support/call-events.js';
import { FakeClock } from '../support/fake-clock.js';

const failure: ProviderFailure = { kind: 'rate_limited', message: 'slow down', httpStatus: 429 };

function logged(...events: RunEvent[]): Record<string, unknown>[] {
  const stream = new PassThrough();
  const tell = structuredLog(stream, new FakeClock());
  for (const event of events) tell(event);
  const text = String(stream.read() ?? '');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

it('names the event, its time and its facts, those of a failure among them', () => {
  const [line] = logged({ type: 'lane_down', lane: 'a', failure });
  expect(line).toEqual({
    time: new Date(new FakeClock().now()).toISOString(),
    event: 'lane_down',
    lane: 'a',
    kind: 'rate_limited',
    message: 'slow down',
    httpStatus: 429,
  });
});

it('tells of a series of failed calls beside what the last one met', () => {
  const series = { calls: 20, line: 7, key: 'doc-7' };
  const [line] = logged({ type: 'halted', lane: 'a', failure, series });
  expect(line).toMatchObject({ event: 'halted', lane: 'a', kind: 'rate_limited', ...series });
});

it('has no line for each document and each call', () => {
  const silent: RunEvent[] = [
    { type: 'importing', documents: 1, bytesRead: 1 },
    callStarted(1),
    callEnded(1),
    { type: 'waited', blockedBy: 'tokens', waitMs: 3 },
    { type: 'tasks_settled', completed: [1], failed: [], retried: [], timesToAnswerMs: [] },
  ];
  expect(logged(...silent)).toEqual([]);
  expect(logged({ type: 'started', run: 'docs', progress: () => EMPTY_SNAPSHOT })).toMatchObject([
    { event: 'started', run: 'docs' },
  ]);
});

it('lets no name or message steer a terminal', () => {
  const stream = new PassThrough();
  structuredLog(stream, new FakeClock())({ type: 'warning', message: 'gone\u001b[2J\u202e' });
  expect(String(stream.read())).toContain('gone\\u001b[2J\\u202e');
});

it('goes on when its reader has gone', () => {
  const stream = new PassThrough();
  const tell = structuredLog(stream, new FakeClock());
  expect(() => stream.emit('error', new Error('EPIPE'))).not.toThrow();
  expect(() => tell({ type: 'store_recovered' })).not.toThrow();
});
