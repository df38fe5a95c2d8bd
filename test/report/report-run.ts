/** A run that has met every kind of failure, and whose every word tries to break out of the page. */

import type { CallEnd } from '../../src/core/call.js';
import { FAILURE_KINDS } from '../../src/core/failure.js';
import type { TaskError } from '../../src/core/outcome.js';
import type { LeasedTask } from '../../src/core/task.js';
import { pricesObserved } from '../../src/runs/run-observations.js';
import { type RunSettings, settingsToJson } from '../../src/runs/run-settings.js';
import { openStore } from '../../src/store/open.js';
import {
  callEnd,
  callStart,
  claim,
  completed,
  documents,
  failed,
  NOW_MS,
  taskError,
} from '../contract/store/builders.js';
import { FakeClock } from '../support/fake-clock.js';

export const HOSTILE = `"'></script><script>document.title='broken'</script><img src=x onerror="document.title='broken'"><!-- --> & {{x}}`;
export const RUN_NAME = `reviews ${HOSTILE}`;
const ANSWERED = 300;

const SETTINGS: RunSettings = {
  request: {
    model: HOSTILE,
    promptTemplate: `Classify ${HOSTILE}`,
    systemTemplate: HOSTILE,
    parameters: { stop: HOSTILE },
    idField: null,
  },
  connection: { baseUrl: null, apiKeyEnv: ['FIRST_KEY', 'SECOND_KEY'], lanes: null },
  pacing: {
    concurrency: 16,
    rpm: 60,
    tpm: 1_000_000,
    rpd: null,
    connections: null,
    connectTimeoutMs: 10_000,
    headersTimeoutMs: null,
    bodyTimeoutMs: null,
    keepAliveMs: 4_000,
    groupUrl: null,
    groupMin: 10,
    groupMax: 100,
    targetLatencyMs: 5_000,
    groupWaitMs: 100,
    maxAttempts: 5,
    timeoutMs: 300_000,
    maxWaitMs: 3_600_000,
    graceMs: 30_000,
    guard: true,
  },
  remote: {
    remote: false,
    remoteMax: 10,
    background: false,
    keepRemote: false,
    pollIntervalMs: null,
    finishDirectByMs: null,
  },
  budget: { maxCostMicroUsd: null, maxTokensTotal: null, maxFailures: null },
  pricesFile: null,
  simulator: null,
  answers: { check: null, repair: false },
  sharing: { dedupe: false, reuse: false },
  output: null,
};

/** Answers over five minutes in two lanes, every tenth call refused; then each kind of failure twice. */
export async function makeReportRun(storePath: string, inputPath: string, simulated = false): Promise<void> {
  const store = await openStore(storePath, { mode: 'write', clock: new FakeClock() });
  try {
    const run = await store.createRun({
      name: RUN_NAME,
      inputPath,
      simulated,
      settings: settingsToJson(SETTINGS, store),
      createdAtMs: NOW_MS,
    });
    const hostile = documents(ANSWERED + 2 * FAILURE_KINDS.length).map((document) => ({
      ...document,
      key: `${document.line} ${HOSTILE}`,
    }));
    await store.addTasks(run.id, hostile);
    await store.updateRun(run.id, { status: 'open', haltReason: HOSTILE });
    await store.noteObservations(run.id, [pricesObserved({ source: HOSTILE, date: '2026-11-01' })]);
    const tasks = await claim(store, run.id, hostile.length);
    const end = async (task: LeasedTask, index: number, change: Partial<CallEnd>): Promise<CallEnd> => {
      const startedAtMs = NOW_MS + index * 1_000;
      const { callIds } = await store.record(
        [callStart(run.id, task, { lane: index % 2 === 0 ? `first ${HOSTILE}` : 'second', startedAtMs })],
        [],
      );
      const latencyMs = 300 + ((index * 37) % 100) ** 2;
      return callEnd(callIds[0] ?? 0, { latencyMs, finishedAtMs: startedAtMs + latencyMs, ...change });
    };
    for (const [index, task] of tasks.entries()) {
      if (index < ANSWERED) {
        await store.record([], [completed(task, await end(task, index, {}))]);
        continue;
      }
      const kind = FAILURE_KINDS[(index - ANSWERED) % FAILURE_KINDS.length] ?? 'network';
      const error: TaskError = taskError(kind, { message: HOSTILE, code: HOSTILE, requestId: HOSTILE });
      const call = await end(task, index, { kind, usage: null, costMicroUsd: null });
      await store.record([], [failed(task, kind, call, error)]);
    }
  } finally {
    await store.close();
  }
}
