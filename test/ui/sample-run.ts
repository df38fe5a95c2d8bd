/** A run as a user might have one. */

import { EMPTY_SNAPSHOT, type ProgressSnapshot } from '../../src/core/progress-snapshot.js';
import type { RunRecord } from '../../src/core/run.js';
import type { RunSummary } from '../../src/core/run-summary.js';

export const snapshot: ProgressSnapshot = {
  ...EMPTY_SNAPSHOT,
  total: 300_000,
  completed: 125_997,
  failed: 3,
  openCalls: 16,
  concurrency: 16,
  requestsPerMinute: 1_204,
  requestsPerMinuteLimit: 1_250,
  tokensPerMinute: 412_345,
  costMicroUsd: 12_410_000,
  etaMs: 3_840_000,
  heldBackBy: 'requests',
};

export const summary: RunSummary = {
  counts: { ready: 0, delayed: 0, in_progress: 0, completed: 299_988, failed: 12, cancelled: 0 },
  gone: 0,
  calls: { made: 300_412, open: 0, failed: 424, repeated: 3, late: 0 },
  usage: { inputTokens: 45_200_000, outputTokens: 12_100_000, cachedTokens: 1_200_000, reasoningTokens: 0 },
  costMicroUsd: 123_400_000,
  callsWithoutCost: 0,
  inDoubt: { calls: 0, withoutUsage: 0, tokens: 0, costMicroUsd: 0 },
  shared: { withinRun: 0, fromEarlierRuns: 0, waiting: 0 },
  lanes: [],
  failedByKind: { truncated: 4, invalid_request: 8 },
  latencyMs: { mean: 812, p50: 640, p95: 1_900, p99: 4_210 },
  firstCallAtMs: 0,
  lastCallAtMs: 3_840_000,
};

export const run: RunRecord = {
  id: 1,
  name: 'reviews',
  status: 'open',
  inputPath: '/data/reviews.jsonl',
  simulated: false,
  settings: {},
  observations: [],
  createdAtMs: 0,
  stoppedAtMs: null,
  haltReason: null,
  outputPaths: ['/data/reviews.results.jsonl', '/data/reviews.errors.jsonl'],
  writtenFiles: [],
  folder: null,
};
