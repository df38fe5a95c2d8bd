/** A worker from its store on: what `work` needs of this process, for the command and for the HTTP service alike. */
import type { Settings } from '../config/settings.js';
import { type RunSettings, settingsOfRun } from '../runs/run-settings.js';
import { type WorkOptions, type WorkReport, work } from '../runs/work.js';
import { createMemoryQuotaStore } from '../store/quota-store.js';
import { checkRun, connect, plainHttpNotice } from './composition.js';
import type { CommandContext } from './context.js';
import { senderOf } from './send-run.js';

export interface WorkerOptions
  extends Pick<
    WorkOptions,
    'store' | 'runId' | 'concurrency' | 'idleExitMs' | 'onSubmitted' | 'stop' | 'tell'
  > {
  readonly settings: Settings;
  /** @throws LlmBatchError for a run that names servers or files that this user has not agreed to */
  readonly checkTrust: (settings: RunSettings) => Promise<void>;
}

/** @throws LlmBatchError as `work` does */
export async function startWorker(
  context: CommandContext,
  { settings, checkTrust, ...options }: WorkerOptions,
): Promise<WorkReport> {
  const { store, tell } = options;
  // Runs go beside each other in this process too.
  const quotas = store.quotas ?? createMemoryQuotaStore(context.clock);
  return work({
    ...(await senderOf(context, settings)),
    ...options,
    async connect(run) {
      const runSettings = settingsOfRun(run);
      await checkTrust(runSettings);
      await checkRun(runSettings, context);
      const plainHttp = plainHttpNotice(runSettings, context);
      if (plainHttp !== null) tell({ type: 'warning', message: plainHttp }, run.name);
      return connect(runSettings, context, quotas);
    },
  });
}
