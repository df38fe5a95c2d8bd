/**
 * The limits in real minutes: the program and the simulator as processes of their own, over real sockets, for two
 * and a half windows. On a clock that stands still, in an instant: test/engine/limits.test.ts.
 */
import { describe, expect, it } from 'vitest';
import { type SimulatorProcess, startSimulatorProcess } from '../support/simulator-process.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

describe.concurrent('two and a half windows of 60 seconds', () => {
  it('600 requests per minute: not one refusal, and the busiest window is full to 99 %', async () => {
    await withSimulator({ rpm: 600 }, async (workspace, simulator) => {
      const end = await drain(workspace, simulator, 1_500, ['--rpm', '600']);
      expect(end.exitCode, end.stderr).toBe(0);
      const { calls, refusedByStatus, peak } = await simulator.books();
      console.log(`busiest minute: ${peak.requests} of 600 requests`);
      expect(refusedByStatus).toEqual({});
      expect(calls).toBe(1_500);
      expect(peak.requestsShare).toBeGreaterThanOrEqual(0.99);
    });
  });

  it('60,000 tokens per minute: not one refusal, and the busiest window is full to 99 %', async () => {
    await withSimulator({ tpm: 60_000 }, async (workspace, simulator) => {
      const end = await drain(workspace, simulator, 620, ['--tpm', '60000']);
      expect(end.exitCode, end.stderr).toBe(0);
      const { refusedByStatus, peak, tokensCharged } = await simulator.books();
      console.log(`busiest minute: ${peak.tokens} of 60,000 tokens; ${tokensCharged} in all`);
      expect(refusedByStatus).toEqual({});
      expect(tokensCharged).toBeGreaterThan(60_000 * 2.4);
      expect(peak.tokensShare).toBeGreaterThanOrEqual(0.99);
    });
  });
});

async function withSimulator(
  limits: { readonly rpm?: number; readonly tpm?: number },
  use: (workspace: Workspace, simulator: SimulatorProcess) => Promise<void>,
): Promise<void> {
  const workspace = new Workspace();
  const simulator = await startSimulatorProcess({
    ...limits,
    latencyMs: { min: 100, max: 900 },
    outputTokens: { min: 50, max: 400 },
  });
  try {
    await use(workspace, simulator);
  } finally {
    await simulator.stop();
    workspace.remove();
  }
}

function drain(
  workspace: Workspace,
  simulator: SimulatorProcess,
  documents: number,
  flags: readonly string[],
) {
  workspace.writeDocuments('docs.jsonl', numberedDocuments(documents));
  return workspace.run(['run', 'docs.jsonl', '--base-url', simulator.url, '--concurrency', '64', ...flags], {
    deadlineMs: 400_000,
  });
}
