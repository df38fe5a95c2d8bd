/** The ways of a run's documents: batches that a provider works on, and calls, answered at once or made in the background. */
import type { BatchRecord } from '../core/batch-record.js';
import { usageError } from '../core/errors.js';
import type { TellEvent } from '../core/event.js';
import type { RunRecord } from '../core/run.js';
import { Drain, type DrainOptions } from '../engine/drain.js';
import type { BatchingLane } from '../engine/lane.js';
import { RemoteWay } from '../engine/remote/remote-way.js';
import { type SendingWay, WaysInTurn } from '../engine/sending-way.js';
import type { Store } from '../store/store.js';
import { createJoinRequests } from './prepare-task.js';
import { type RunSettings, settingsOfRun } from './run-settings.js';

/**
 * What of a run is with providers: batches that are begun and not settled, and background responses.
 * @param wanted absent: both
 */
export async function openBatches(
  store: Store,
  run: RunRecord,
  wanted?: BatchRecord['kind'],
): Promise<readonly BatchRecord[]> {
  const all = await store.remote.list(run.id);
  return all.filter(({ state, kind }) => state !== 'settled' && (wanted ?? kind) === kind);
}

type WayOptions = Omit<DrainOptions, keyof ReturnType<typeof asAsked> | 'runId' | 'background'> & {
  readonly onSettled: NonNullable<DrainOptions['onSettled']>;
  /** `cancel`: nothing is sent, and what is at providers is cancelled; the answers to that are taken all the same. */
  readonly task: 'send' | 'cancel';
  /** Where the files of batches lie while they are made or read. */
  readonly batchFolder: string;
  /** False: batches are handed in and fetched, and not waited for. */
  readonly waits: boolean;
  /** Told of what happens to batches. */
  readonly tell: TellEvent;
};

/**
 * What is at a provider goes first, whichever way the rest goes.
 * @throws LlmBatchError REMOTE_UNAVAILABLE (exit 2) where no lane takes batches
 */
export async function wayOf(
  run: RunRecord,
  { task, batchFolder, waits, tell, ...options }: WayOptions,
): Promise<SendingWay> {
  const settings = settingsOfRun(run);
  const { remote } = settings;
  const shared = { ...options, ...asAsked(settings), runId: run.id };
  // What is there from before is fetched, by whichever way it was sent.
  const taskIf = (isAsked: boolean) => (task === 'send' && !isAsked ? 'collect' : task);
  const direct = new Drain({ ...shared, background: { ...remote, task: taskIf(remote.background) } });
  const isAsked = task === 'send' && remote.remote;
  if (!isAsked && (await openBatches(options.store, run, 'batch')).length === 0) return direct;
  const lanes = options.lanes.filter((lane): lane is BatchingLane => lane.remote !== undefined);
  if (lanes.length === 0) {
    throw usageError('REMOTE_UNAVAILABLE', 'None of the servers of this run takes batches.');
  }
  const batches = new RemoteWay({
    ...{ ...shared, ...remote, runName: run.name, lanes, join: createJoinRequests(null), waits },
    task: taskIf(remote.remote),
    most: remote.remoteMax,
    folder: batchFolder,
    onNotice: tell,
  });
  return new WaysInTurn(batches, direct);
}

/** In the engine's words what the user has said of a run. */
function asAsked({ pacing }: RunSettings) {
  return {
    join: createJoinRequests(pacing.groupUrl),
    grouping: {
      fewest: pacing.groupMin,
      most: pacing.groupMax,
      targetLatencyMs: pacing.targetLatencyMs,
      waitMs: pacing.groupWaitMs,
    },
    concurrency: pacing.concurrency,
    retry: pacing,
    timeoutMs: pacing.timeoutMs,
    graceMs: pacing.graceMs,
    isGuarded: pacing.guard,
  };
}
