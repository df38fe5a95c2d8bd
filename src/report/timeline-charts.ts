/** The charts that run over time: answers, use of the limits, tokens and money. */

import type { RunTimeline, TimelineBucket } from '../core/timeline.js';
import type { RunInspection } from '../runs/inspect-run.js';
import {
  formatCount,
  formatDuration,
  formatMoney,
  formatPercent,
  formatQuantity,
  formatTokens,
} from '../ui/numbers.js';
import type { Chart, ChartColour, ChartSeries } from './chart.js';
import { dayText, localMs, stretchName, stretchText, zoneText } from './time-text.js';

/** A limit further above the peak than this would flatten everything below it. */
const HIGHEST_SHOWN_LIMIT = 4;
/** More names than these would hide what they stand beside. */
const MOST_MARKS = 6;

export function timelineCharts(
  timeline: RunTimeline,
  inspection: Pick<RunInspection, 'run' | 'requestsPerMinuteLimit' | 'tokensPerMinuteLimit' | 'summary'>,
): Chart[] {
  const charts = [
    answersChart(timeline),
    limitChart(timeline, {
      id: 'requests',
      title: 'Requests per minute',
      noun: 'requests',
      colour: 'input',
      unit: 'count',
      limit: inspection.requestsPerMinuteLimit,
      peakOf: (bucket) => bucket.peakRequestsPerMinute,
      write: formatCount,
    }),
    limitChart(timeline, {
      id: 'quota-tokens',
      title: 'Tokens per minute',
      noun: 'tokens',
      colour: 'output',
      unit: 'tokens',
      limit: inspection.tokensPerMinuteLimit,
      peakOf: (bucket) => bucket.peakTokensPerMinute,
      write: formatTokens,
    }),
    tokensChart(timeline),
  ];
  const { run, summary } = inspection;
  return summary.costMicroUsd > 0 && !run.simulated ? [...charts, moneyChart(timeline)] : charts;
}

function along({ bucketMs, buckets }: RunTimeline): Pick<Chart, 'edges' | 'along' | 'stretchMs' | 'marks'> {
  const starts = buckets.map(({ fromMs }) => fromMs);
  const marks = starts.flatMap((fromMs, at) => {
    const pauseMs = fromMs - (starts[at - 1] ?? fromMs) - bucketMs;
    return pauseMs > 0 ? [{ name: `pause ${formatDuration(pauseMs)}`, at }] : [];
  });
  return {
    edges: [...starts, (starts.at(-1) ?? 0) + bucketMs].map(localMs),
    along: 'moments',
    stretchMs: bucketMs,
    marks: marks.length > MOST_MARKS ? marks.map(({ at }) => ({ name: '', at })) : marks,
  };
}

function tableOf(
  { bucketMs, buckets }: RunTimeline,
  heads: readonly string[],
  cellsOf: (bucket: TimelineBucket, index: number) => readonly string[],
): Chart['table'] {
  const days = new Set(buckets.map(({ fromMs }) => dayText(fromMs)));
  return {
    heads: [`from (${zoneText(buckets[0]?.fromMs ?? 0)})`, ...heads],
    rows: buckets.map((bucket, index) => [
      `${days.size > 1 ? `${dayText(bucket.fromMs)} ` : ''}${stretchText(bucket.fromMs, bucketMs)}`,
      ...cellsOf(bucket, index),
    ]),
  };
}

function sumOf(timeline: RunTimeline, amountOf: (bucket: TimelineBucket) => number): number {
  return timeline.buckets.reduce((sum, bucket) => sum + amountOf(bucket), 0);
}

function otherFailures(bucket: TimelineBucket): number {
  return bucket.failed - bucket.throttled;
}

function answersChart(timeline: RunTimeline): Chart {
  const { buckets, bucketMs } = timeline;
  const answered = sumOf(timeline, (bucket) => bucket.answered);
  const failed = sumOf(timeline, otherFailures);
  const throttled = sumOf(timeline, (bucket) => bucket.throttled);
  const most = Math.max(...buckets.map((bucket) => bucket.answered));
  const parts = [
    formatQuantity(answered, 'answer'),
    formatQuantity(failed, 'failed call'),
    formatQuantity(throttled, 'call refused by throttling', 'calls refused by throttling'),
  ];
  return {
    ...along(timeline),
    id: 'answers',
    title: `Answers and refusals per ${stretchName(bucketMs)}`,
    summary: `${parts.join(', ')}; at most ${formatQuantity(most, 'answer')} per ${stretchName(bucketMs)}.`,
    unit: 'count',
    stacked: true,
    series: [
      area('answers', 'good', timeline, (bucket) => bucket.answered),
      area('failed', 'bad', timeline, otherFailures),
      area('throttled', 'throttled', timeline, (bucket) => bucket.throttled),
    ],
    table: tableOf(timeline, ['answers', 'failed', 'throttled'], (bucket) => [
      formatCount(bucket.answered),
      formatCount(otherFailures(bucket)),
      formatCount(bucket.throttled),
    ]),
  };
}

interface LimitChartOptions {
  readonly id: string;
  readonly title: string;
  readonly noun: string;
  readonly colour: ChartColour;
  readonly unit: 'count' | 'tokens';
  readonly limit: number | null;
  readonly peakOf: (bucket: TimelineBucket) => number;
  readonly write: (amount: number) => string;
}

function limitChart(timeline: RunTimeline, options: LimitChartOptions): Chart {
  const { limit, peakOf, write, noun } = options;
  const peaks = timeline.buckets.map(peakOf);
  const peak = Math.max(...peaks);
  const peakSentence = `At most ${write(peak)} ${noun} in any 60 seconds`;
  const isShown = limit !== null && limit <= HIGHEST_SHOWN_LIMIT * peak;
  const limitWords =
    limit === null
      ? '; no limit of ours was set'
      : `, ${formatPercent(peak, limit)} of the limit of ${write(limit)}${isShown ? '' : ', which is above this chart'}`;
  return {
    ...along(timeline),
    id: options.id,
    title: options.title,
    summary: `${peakSentence}${limitWords}.`,
    unit: options.unit,
    stacked: false,
    series: [
      area('peak', options.colour, timeline, peakOf),
      ...(isShown
        ? [{ name: 'limit', colour: 'limit', look: 'limit', values: peaks.map(() => limit) } as const]
        : []),
    ],
    table: tableOf(
      timeline,
      limit === null ? ['peak'] : ['peak', 'of the limit'],
      (bucket): readonly string[] => {
        const cell = formatCount(peakOf(bucket));
        return limit === null ? [cell] : [cell, formatPercent(peakOf(bucket), limit)];
      },
    ),
  };
}

function tokensChart(timeline: RunTimeline): Chart {
  const { bucketMs } = timeline;
  const read = sumOf(timeline, (bucket) => bucket.inputTokens);
  const written = sumOf(timeline, (bucket) => bucket.outputTokens);
  return {
    ...along(timeline),
    id: 'tokens',
    title: `Tokens per ${stretchName(bucketMs)}`,
    summary: `${formatTokens(read)} tokens in and ${formatTokens(written)} tokens out, as the server reported them.`,
    unit: 'tokens',
    stacked: true,
    series: [
      area('in', 'input', timeline, (bucket) => bucket.inputTokens),
      area('out', 'output', timeline, (bucket) => bucket.outputTokens),
    ],
    table: tableOf(timeline, ['in', 'out'], (bucket) => [
      formatCount(bucket.inputTokens),
      formatCount(bucket.outputTokens),
    ]),
  };
}

function moneyChart(timeline: RunTimeline): Chart {
  let spent = 0;
  const totals = timeline.buckets.map((bucket) => {
    spent += bucket.costMicroUsd;
    return spent;
  });
  return {
    ...along(timeline),
    id: 'money',
    title: 'Money spent so far',
    summary: `${formatMoney(spent)} over all calls with a known price, failed ones that were billed included.`,
    unit: 'money',
    stacked: false,
    series: [area('spent', 'money', timeline, (_, index) => totals[index] ?? 0)],
    table: tableOf(timeline, ['spent', 'so far'], (bucket, index) => [
      formatMoney(bucket.costMicroUsd),
      formatMoney(totals[index] ?? 0),
    ]),
  };
}

function area(
  name: string,
  colour: ChartColour,
  { buckets }: RunTimeline,
  amountOf: (bucket: TimelineBucket, index: number) => number,
): ChartSeries {
  return { name, colour, look: 'area', values: buckets.map(amountOf) };
}
