/** What `run` and `resume` share: a run that is imported and owned is sent over its lanes, under the eyes of who watches. */
import type { Settings } from '../config/settings.js';
import { type CompleteOptions, completeRun, type RunOutputs } from '../runs/complete-run.js';
import type { SentRun } from '../runs/execute-run.js';
import { settingsOfRun } from '../runs/run-settings.js';
import { formatCount, formatQuantity } from '../ui/numbers.js';
import { connect, plainHttpNotice } from './composition.js';
import type { CommandContext } from './context.js';
import { batchFolder, salvageFile, workerIdOf } from './open-store.js';
import { traceRuns } from './telemetry.js';

export interface SendRunOptions extends Pick<CompleteOptions, 'store' | 'run' | 'choice' | 'tell'> {
  readonly settings: Settings;
  /** For what is with a provider. */
  readonly waits: boolean;
  readonly outputs: Omit<RunOutputs, 'stream'>;
}

/** What whoever sends documents needs of this process, besides the store and the lanes. */
export async function senderOf(context: CommandContext, settings: Settings) {
  const { clock, random, interrupts: stop } = context;
  return {
    ...{ clock, random, stop, workerId: workerIdOf(context) },
    salvagePath: await salvageFile(context, settings),
    batchFolder: await batchFolder(context, settings),
  };
}

/** @throws LlmBatchError as `connect` and `completeRun` do */
export async function sendRun(
  context: CommandContext,
  { settings, store, run, outputs, choice, waits, tell }: SendRunOptions,
): Promise<SentRun> {
  const runSettings = settingsOfRun(run);
  const plainHttp = plainHttpNotice(runSettings, context);
  if (plainHttp !== null) tell({ type: 'warning', message: plainHttp });
  const lanes = await connect(runSettings, context, store.quotas);
  const tracing = await traceRuns(context);
  const fewer = fewerConnectionsNotice(lanes.mostConnections, runSettings.pacing.concurrency);
  if (fewer !== null) tell({ type: 'warning', message: fewer });
  try {
    return await completeRun({
      ...{ store, run, ...lanes, ...(await senderOf(context, settings)), choice, waits },
      tell(event) {
        tell(event);
        tracing.tell(event);
      },
      outputs: { ...outputs, stream: context.stdout },
    });
  } finally {
    await lanes.close();
    await tracing.close();
  }
}

/** Told before the first call, where this machine allows fewer calls at once than the user wants. */
function fewerConnectionsNotice(most: number, concurrency: number | 'auto'): string | null {
  if (concurrency === 'auto' || concurrency <= most) return null;
  return `This machine lets the program open ${formatQuantity(most, 'connection')} at once (\`ulimit -n\`), so there are no ${formatCount(concurrency)} calls open at once.`;
}
