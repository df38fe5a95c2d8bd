/** What Prometheus is told of runs. */
import { expect, it } from 'vitest';
import type { RunEvent } from '../../src/core/event.js';
import { Metrics, type StandingFigures } from '../../src/telemetry/metrics.js';
import { callEnded, callStarted } from '../support/call-events.js';

const NOTHING: StandingFigures = { backlog: { parts: [], oldestMs: null } };

async function linesAfter(events: readonly RunEvent[], figures = NOTHING): Promise<readonly string[]> {
  const metrics = new Metrics();
  for (const event of events) metrics.tell(event);
  return (await metrics.render(figures)).text.split('\n');
}

it('counts calls by how they ended, with their tokens, their cost and how long they took', async () => {
  const lines = await linesAfter([
    callStarted(1),
    callEnded(1),
    callStarted(2),
    callEnded(2, { kind: 'overloaded', httpStatus: 503, usage: null, costMicroUsd: null, latencyMs: 6_000 }),
    callStarted(3),
  ]);
  expect(lines).toEqual(
    expect.arrayContaining([
      'llm_batch_open_calls{lane="a"} 1',
      'llm_batch_calls_total{lane="a",outcome="answered"} 1',
      'llm_batch_calls_total{lane="a",outcome="overloaded"} 1',
      'llm_batch_tokens_total{lane="a",direction="input"} 10',
      'llm_batch_tokens_total{lane="a",direction="output"} 5',
      'llm_batch_cost_usd_total{lane="a"} 0.0015',
      'llm_batch_call_duration_seconds_bucket{le="0.5",lane="a"} 1',
      'llm_batch_call_duration_seconds_bucket{le="10",lane="a"} 2',
    ]),
  );
});

it('says how long tasks took from submission to answer, and what calls waited for', async () => {
  const lines = await linesAfter([
    { type: 'tasks_settled', completed: [1, 2], failed: [3], retried: [], timesToAnswerMs: [400, 20_000] },
    { type: 'waited', blockedBy: 'tokens', waitMs: 1_500 },
    { type: 'waited', blockedBy: 'tokens', waitMs: 500 },
    { type: 'leases_lost', documents: 2 },
    { type: 'lane_down', lane: 'a', failure: { kind: 'network', message: 'reset' } },
  ]);
  expect(lines).toEqual(
    expect.arrayContaining([
      'llm_batch_tasks_settled_total{outcome="completed"} 2',
      'llm_batch_tasks_settled_total{outcome="failed"} 1',
      'llm_batch_time_to_answer_seconds_bucket{le="0.5"} 1',
      'llm_batch_time_to_answer_seconds_count 2',
      'llm_batch_limiter_wait_seconds_total{cause="tokens"} 2',
      'llm_batch_leases_lost_total 2',
      'llm_batch_lane_down{lane="a"} 1',
    ]),
  );
});

it('shows the backlog as it is at the scrape, and nothing of what it was', async () => {
  const metrics = new Metrics();
  await metrics.render({
    backlog: { parts: [{ state: 'ready', priority: 5, tasks: 9 }], oldestMs: 90_000 },
  });
  const { text } = await metrics.render({
    backlog: { parts: [{ state: 'delayed', priority: 0, tasks: 2 }], oldestMs: 30_000 },
    webhooks: { due: 3, parked: 1 },
  });
  expect(text).toContain('llm_batch_backlog_tasks{state="delayed",priority="0"} 2');
  expect(text).not.toContain('priority="5"');
  expect(text).toContain('llm_batch_oldest_pending_age_seconds 30');
  expect(text).toContain('llm_batch_webhooks{state="parked"} 1');
});
