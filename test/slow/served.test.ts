/** The service at its full size: what test/faults/system/served.test.ts does in small. */
import { expect, it } from 'vitest';
import { serveThroughKills } from '../support/served-load.js';

it('200 clients, 20,000 tasks and two kills: no 202 is lost, no key is two tasks, every webhook comes', async () => {
  const report = await serveThroughKills({ clients: 200, tasks: 20_000, kills: 2, concurrency: 64 });
  const { openAtKills, repeatedCalls, repeatedSubmissions, webhooks } = report;
  console.log(
    `${openAtKills} calls open at ${report.killed} kills, ${repeatedCalls} repeated; ${repeatedSubmissions} submissions repeated; ${webhooks} webhooks`,
  );
  expect(report.violations).toEqual([]);
  expect(report.killed).toBe(2);
  expect(report.webhooks).toBe(20_000);
});
