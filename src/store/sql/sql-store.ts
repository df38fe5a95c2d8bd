/** The methods of the port that are the same for every backend: each is one transaction over the parts beside this file. */
import type { Backlog } from '../../core/backlog.js';
import type { ResponseNotes } from '../../core/batch-record.js';
import type { CallStart, RecentCall } from '../../core/call.js';
import type { Settlement } from '../../core/outcome.js';
import type { ResultRow, TaskRow } from '../../core/result-row.js';
import type { NewRun, RunChange, RunObservation, RunRecord } from '../../core/run.js';
import type { RunSummary } from '../../core/run-summary.js';
import type { NewTask, TaskPlace } from '../../core/task.js';
import type { LatencyCount, RunTimeline } from '../../core/timeline.js';
import type { RemoteStore } from '../remote-store.js';
import type { ServedStore } from '../served-store.js';
import type {
  ImportMatch,
  ImportTally,
  RecordedProgress,
  ReimportOptions,
  RescueReport,
  ResultPageOptions,
  RunWork,
  SharedPage,
  Store,
} from '../store.js';
import { endBatchesOfRun, noteResponses, remoteStore, type SettleRemote } from './batches.js';
import { recentCalls, type SumLost } from './calls-underway.js';
import { cancelOpenTasks, listWork, readBacklog, retryFailedTasks } from './open-tasks.js';
import {
  addTasks,
  type DocumentStore,
  finishReimport,
  type InputDocument,
  matchTasks,
  reimportTasks,
} from './reimports.js';
import { rescueTasks } from './rescue.js';
import { resultPage } from './results.js';
import { cancelRun, createRun, listRuns, noteObservations, reopenRun, updateRun } from './runs.js';
import { type SubmissionStore, servedStore } from './served.js';
import { settlePage } from './sharing.js';
import type { Player, Steps } from './steps.js';
import { summarizeRun } from './summary.js';
import { listTasks, readTasks } from './tasks.js';
import { latenciesOfRun, timelineOfRun } from './timeline.js';
import { beatWorker, noteStopOfWorker } from './workers.js';

/** What each backend does its own way. */
export interface OwnWays {
  readonly player: Player;
  readonly documents: DocumentStore;
  readonly submissions: SubmissionStore;
  /** Writes calls that are about to be sent, and what became of leased tasks. */
  readonly record: (
    started: readonly CallStart[],
    settlements: readonly Settlement[],
  ) => Steps<Omit<RecordedProgress, 'responseIds'>>;
  readonly settleRemote: SettleRemote;
  readonly sumLost: SumLost;
}

const WHOLE_RUN = { isLong: true };
/** A claim or a beat: whoever has tasks that the store knows nothing of is told so before a call of theirs leaves. */
export const UNTIL_THE_NEXT = { mayBeLost: true };

export abstract class SqlStore {
  abstract readonly folder: string | null;
  readonly workingFolder?: string | undefined;
  readonly remote: RemoteStore;
  readonly served: ServedStore;
  readonly #own: OwnWays;
  readonly #player: Player;

  constructor(own: OwnWays) {
    const { player, documents, submissions, settleRemote } = own;
    this.#own = own;
    this.#player = player;
    this.remote = remoteStore(player, settleRemote);
    this.served = servedStore(player, documents, submissions);
  }

  noteStop(workerId: string): Promise<void> {
    return this.#player.write(() => noteStopOfWorker(workerId));
  }

  createRun(run: NewRun): Promise<RunRecord> {
    return this.#player.write(() => createRun(this, run));
  }

  listRuns(): Promise<readonly RunRecord[]> {
    return this.#player.read(() => listRuns(this));
  }

  updateRun(runId: number, change: RunChange): Promise<RunRecord> {
    return this.#player.write(() => updateRun(this, this.#own.documents, runId, change));
  }

  noteObservations(runId: number, observations: readonly RunObservation[]): Promise<void> {
    return this.#player.write(() => noteObservations(runId, observations));
  }

  cancelRun(runId: number): Promise<number> {
    const { documents, sumLost } = this.#own;
    return this.#player.write(function* () {
      yield* documents.settle(runId);
      yield* cancelRun(runId);
      yield* endBatchesOfRun(runId, sumLost);
      return yield* cancelOpenTasks(runId);
    }, WHOLE_RUN);
  }

  addTasks(runId: number, tasks: readonly NewTask[]): Promise<{ added: number; duplicates: number }> {
    return this.#player.write(() => addTasks(this.#own.documents, runId, tasks));
  }

  matchTasks(
    runId: number,
    documents: readonly InputDocument[],
    answeredBy: string,
  ): Promise<readonly ImportMatch[]> {
    return this.#player.read(() => matchTasks(this.#own.documents, runId, documents, answeredBy));
  }

  reimportTasks(runId: number, tasks: readonly NewTask[], options: ReimportOptions): Promise<ImportTally> {
    return this.#player.write(() => reimportTasks(this.#own.documents, runId, tasks, options));
  }

  finishReimport(runId: number): Promise<{ gone: number }> {
    return this.#player.write(() => finishReimport(this.#own.documents, runId), WHOLE_RUN);
  }

  settlePairs(runId: number, afterTaskId: number, limit: number): Promise<SharedPage> {
    return this.#player.write(() => settlePage(runId, afterTaskId, limit));
  }

  listWork(): Promise<readonly RunWork[]> {
    return this.#player.readOnce(listWork);
  }

  readBacklog(): Promise<Backlog> {
    return this.#player.readOnce(readBacklog);
  }

  async record(
    started: readonly CallStart[],
    settlements: readonly Settlement[],
    responses: ResponseNotes = { taken: [], ended: [] },
  ): Promise<RecordedProgress> {
    const { taken, ended } = responses;
    if (started.length + settlements.length + taken.length + ended.length === 0) {
      return { callIds: [], responseIds: [], lostTaskIds: [] };
    }
    const { record, sumLost } = this.#own;
    return this.#player.write(function* () {
      const progress = yield* record(started, settlements);
      return { ...progress, responseIds: yield* noteResponses(responses, sumLost) };
    });
  }

  async beat(workerId: string, leaseMs: number): Promise<void> {
    await this.#player.write(() => beatWorker(workerId, leaseMs), UNTIL_THE_NEXT);
  }

  rescueTasks(options: Parameters<Store['rescueTasks']>[0]): Promise<RescueReport> {
    return this.#player.write(() => rescueTasks(options, this.#own.sumLost));
  }

  retryTasks(runId: number, filter: Parameters<Store['retryTasks']>[1]): Promise<number> {
    return this.#player.write(function* () {
      const retried = yield* retryFailedTasks(runId, filter);
      if (retried > 0) yield* reopenRun(runId);
      return retried;
    }, WHOLE_RUN);
  }

  readResults(options: ResultPageOptions): Promise<readonly ResultRow[]> {
    return this.#player.read(() => resultPage(options));
  }

  listTasks(runId: number, afterTaskId: number, limit: number): Promise<readonly TaskPlace[]> {
    return this.#player.readOnce(() => listTasks(runId, afterTaskId, limit));
  }

  readTasks(runId: number, taskIds: readonly number[], includeBody = true): Promise<readonly TaskRow[]> {
    return this.#player.readOnce(() => readTasks(runId, taskIds, includeBody));
  }

  summarizeRun(runId: number): Promise<RunSummary> {
    return this.#player.read(() => summarizeRun(runId));
  }

  readTimeline(runId: number, mostBuckets: number): Promise<RunTimeline | null> {
    return this.#player.read(() => timelineOfRun(runId, mostBuckets), WHOLE_RUN);
  }

  readLatencies(runId: number): Promise<readonly LatencyCount[]> {
    return this.#player.read(() => latenciesOfRun(runId));
  }

  readRecentCalls(withinMs: number): Promise<readonly RecentCall[]> {
    return this.#player.readOnce(() => recentCalls(withinMs));
  }
}
