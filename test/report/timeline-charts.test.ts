import { describe, expect, it } from 'vitest';
import type { RunTimeline, TimelineBucket } from '../../src/core/timeline.js';
import { timelineCharts } from '../../src/report/timeline-charts.js';
import type { RunInspection } from '../../src/runs/inspect-run.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const START_MS = Date.UTC(2027, 0, 15, 8);

function timelineAt(...startsMs: readonly number[]): RunTimeline {
  const bucket: Omit<TimelineBucket, 'fromMs'> = {
    answered: 50,
    failed: 5,
    throttled: 2,
    inputTokens: 1_000,
    outputTokens: 200,
    costMicroUsd: 300_000,
    peakRequestsPerMinute: 57,
    peakTokensPerMinute: 1_200,
  };
  return { bucketMs: MINUTE_MS, buckets: startsMs.map((fromMs) => ({ ...bucket, fromMs })) };
}

function chartsOf(timeline: RunTimeline, limit: number | null = null) {
  const inspection = {
    run: { simulated: false },
    summary: { costMicroUsd: 1 },
    requestsPerMinuteLimit: limit,
    tokensPerMinuteLimit: limit,
  } as RunInspection;
  const charts = timelineCharts(timeline, inspection);
  return (id: string) => charts.find((chart) => chart.id === id);
}

describe('charts over time', () => {
  it('mark a pause where it was cut out, and name the days in the table', () => {
    const chart = chartsOf(timelineAt(START_MS, START_MS + MINUTE_MS, START_MS + 24 * HOUR_MS))('answers');
    expect(chart?.marks).toEqual([{ name: 'pause 23 h 58 min', at: 2 }]);
    expect(chart?.table.rows.map(([from]) => from)).toEqual([
      '2027-01-15 08:00',
      '2027-01-15 08:01',
      '2027-01-16 08:00',
    ]);
  });

  it('keep throttling apart from other failures', () => {
    const chart = chartsOf(timelineAt(START_MS))('answers');
    expect(chart?.series.map(({ name, values }) => [name, values[0]])).toEqual([
      ['answers', 50],
      ['failed', 3],
      ['throttled', 2],
    ]);
  });

  it('draw a limit that is near, and only tell one that is far above', () => {
    const near = chartsOf(timelineAt(START_MS), 60)('requests');
    expect(near?.series.map(({ name }) => name)).toEqual(['peak', 'limit']);
    expect(near?.summary).toContain('95% of the limit of 60.');
    const far = chartsOf(timelineAt(START_MS), 10_000)('requests');
    expect(far?.series.map(({ name }) => name)).toEqual(['peak']);
    expect(far?.summary).toContain('of the limit of 10,000, which is above this chart');
  });

  it('add up the money', () => {
    const chart = chartsOf(timelineAt(START_MS, START_MS + MINUTE_MS))('money');
    expect(chart?.series[0]?.values).toEqual([300_000, 600_000]);
    expect(chart?.summary).toContain('$0.60');
  });
});
