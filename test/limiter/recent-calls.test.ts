import { expect, test } from 'vitest';
import { RecentCalls } from '../../src/limiter/recent-calls.js';

test('what was let in is what was sent and not refused, by the time since the first call', () => {
  const recent = new RecentCalls();
  for (let atMs = 0; atMs < 5_000; atMs += 100) recent.sent(1, 20, atMs);
  for (let atMs = 0; atMs < 2_000; atMs += 100) recent.correct(-1, -20, atMs);
  const letIn = recent.perMs(10_000, 5_000);
  expect(letIn.requests * 5_000).toBeCloseTo(30);
  expect(letIn.tokens * 5_000).toBeCloseTo(600);
});

test('a burst counts as spread over a second at least', () => {
  const recent = new RecentCalls();
  for (let call = 0; call < 50; call += 1) recent.sent(1, 0, 10_000);
  expect(recent.perMs(10_000, 10_001).requests * 1_000).toBeCloseTo(50);
});

test('calls older than a minute are forgotten, and refusals of them change nothing', () => {
  const recent = new RecentCalls();
  recent.sent(1, 1, 0);
  recent.sent(1, 1, 100_000);
  recent.correct(-1, -1, 36_000);
  expect(recent.perMs(60_000, 100_000).requests * 60_000).toBeCloseTo(1);
});
