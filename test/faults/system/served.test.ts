/** A service that is killed under load keeps what it has promised; at its full size: test/slow/served.test.ts. */
import { expect, it } from 'vitest';
import { serveThroughKills } from '../../support/served-load.js';

it('20 clients and two kills: no 202 is lost, no key is two tasks, every webhook comes under one id', async () => {
  const report = await serveThroughKills({ clients: 20, tasks: 1_000, kills: 2, concurrency: 32 });
  expect(report.violations).toEqual([]);
  expect(report.killed).toBe(2);
  expect(report.webhooks).toBe(1_000);
  expect(report.repeatedSubmissions).toBe(250);
});
