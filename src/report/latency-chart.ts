/** How long answers took, as a histogram over a logarithmic scale. */

import type { RunSummary } from '../core/run-summary.js';
import type { LatencyCount } from '../core/timeline.js';
import { formatCount, formatDuration, formatQuantity } from '../ui/numbers.js';
import type { Chart } from './chart.js';

const MOST_BARS = 36;

interface Bar {
  readonly overMs: number;
  readonly upToMs: number;
  readonly calls: number;
}

/** @param latencies not empty */
export function latencyChart(
  latencies: readonly LatencyCount[],
  percentiles: NonNullable<RunSummary['latencyMs']>,
): Chart {
  const bars = barsOf(latencies);
  const answers = bars.reduce((sum, { calls }) => sum + calls, 0);
  const { mean, p50, p95, p99 } = percentiles;
  return {
    id: 'latency',
    title: 'How long answers took',
    summary: `${formatQuantity(answers, 'answer')}: half of them within ${formatDuration(p50)} (p50), 95% within ${formatDuration(p95)} (p95), 99% within ${formatDuration(p99)} (p99); ${formatDuration(mean)} on average.`,
    edges: [...bars.map(({ overMs }) => overMs), bars.at(-1)?.upToMs ?? 0],
    along: 'durations',
    stretchMs: 0,
    unit: 'count',
    stacked: false,
    series: [{ name: 'answers', colour: 'input', look: 'area', values: bars.map(({ calls }) => calls) }],
    marks: [
      { name: 'p50', at: p50 },
      { name: 'p95', at: p95 },
      { name: 'p99', at: p99 },
    ],
    table: {
      heads: ['longer than', 'up to', 'answers'],
      rows: bars
        .filter(({ calls }) => calls > 0)
        .map(({ overMs, upToMs, calls }) => [
          formatDuration(overMs),
          formatDuration(upToMs),
          formatCount(calls),
        ]),
    },
  };
}

/**
 * Neighbours put together, always as many to a bar: bars of unequal reach would make a comb of a smooth curve. One
 * empty bar at either end, so that the curve is seen to end.
 */
function barsOf(latencies: readonly LatencyCount[]): Bar[] {
  const counted = latencies.filter(({ calls }) => calls > 0);
  const first = counted[0];
  const last = counted.at(-1);
  if (first === undefined || last === undefined) return [];
  const growth = first.upToMs / first.overMs;
  const numberOf = ({ upToMs }: LatencyCount): number => Math.round(Math.log(upToMs) / Math.log(growth));
  const span = numberOf(last) - numberOf(first) + 1;
  const together = Math.max(2, Math.ceil(span / MOST_BARS));
  const barOf = (latency: LatencyCount): number => Math.ceil(numberOf(latency) / together);
  const firstBar = barOf(first) - 1;
  const calls = Array.from({ length: barOf(last) - firstBar + 2 }, () => 0);
  for (const latency of counted) {
    const index = barOf(latency) - firstBar;
    calls[index] = (calls[index] ?? 0) + latency.calls;
  }
  return calls.map((count, index) => ({
    overMs: growth ** ((firstBar + index - 1) * together),
    upToMs: growth ** ((firstBar + index) * together),
    calls: count,
  }));
}
