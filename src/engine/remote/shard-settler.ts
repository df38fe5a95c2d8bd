/**
 * Stores what came of a batch: its files are fetched to the disk and read line by line, in whatever order and however
 * often a line stands there.
 */
import { rm } from 'node:fs/promises';
import type { BatchRecord, BatchSettlement } from '../../core/batch-record.js';
import type { Clock, Random } from '../../core/clock.js';
import type { ProviderFailure } from '../../core/failure.js';
import { haltsRun, type RetryPolicy } from '../../core/retry-decision.js';
import type { LeasedTask } from '../../core/task.js';
import type { ProviderReply, ProviderRequest } from '../../provider/provider.js';
import type { FileLine } from '../../provider/remote-batches.js';
import type { Store } from '../../store/store.js';
import { billedFor, mostTokensOf, NOTHING_SPENT } from '../billing.js';
import { plus, type Spending } from '../budget.js';
import type { SettledTask } from '../drain.js';
import { type Bill, billOf, callEndOf, type Judged, judge, released } from '../judge-reply.js';
import type { BatchingLane } from '../lane.js';
import type { PreparedTask, PrepareTask } from '../prepared-task.js';
import { customIdOf, taskIdOf } from './custom-id.js';
import { linesOfFile } from './file-lines.js';
import { type Server, WayLeft } from './server.js';

export interface SettlerOptions {
  readonly store: Store;
  readonly prepare: PrepareTask;
  readonly clock: Clock;
  readonly random: Random;
  readonly retry: RetryPolicy;
  readonly serverOf: (lane: BatchingLane) => Server;
  readonly onSettled: (settled: readonly SettledTask[]) => void;
}

/** What came of a shard. */
interface Tally {
  billed: Spending;
  completed: number;
  failed: number;
  /** Were not run, or are tried again. */
  returned: number;
  /** What a line failed with that concerns the whole run; null: nothing of the kind. */
  halting: ProviderFailure | null;
}

/** How a batch ended. */
export interface ShardEnd {
  /** Why it failed as a whole; null: it did not. */
  readonly failure: ProviderFailure | null;
  /** It was worked off to its last line. */
  readonly isComplete: boolean;
}

type TaskSettlement = BatchSettlement & { readonly task: LeasedTask };

const LINE_MISSING: ProviderFailure = {
  kind: 'bad_output',
  message: 'The batch was worked off, and its files have no line for this document',
};

/** Lines that are stored in one commit. */
const PAGE = 200;
/** However few lines there are, no more text than this is held. */
const PAGE_BYTES = 8 * 1024 * 1024;

export class ShardSettler {
  readonly #options: SettlerOptions;

  constructor(options: SettlerOptions) {
    this.#options = options;
  }

  /**
   * @param path where its files may be put, with an ending each
   * @param end why the batch as a whole failed, null where it did not, and whether it was worked off
   * @throws WayLeft where the user asked to stop: the rest is settled at the next start
   */
  async settle(
    batch: BatchRecord,
    lane: BatchingLane,
    path: string,
    end: ShardEnd,
  ): Promise<Readonly<Tally>> {
    const { store, serverOf } = this.#options;
    const tally: Tally = { billed: NOTHING_SPENT, completed: 0, failed: 0, returned: 0, halting: null };
    await store.remote.note(batch.id, { state: 'settling' });
    const files = { output: batch.outputFileId, errors: batch.errorFileId };
    for (const [ending, fileId] of Object.entries(files)) {
      if (fileId === null) continue;
      const file = `${path}.${ending}`;
      await serverOf(lane).ask((options) => lane.remote.batches.download(fileId, file, options));
      await this.#settleFile(batch, lane, file, tally);
      await rm(file, { force: true });
    }
    await this.#settleRest(batch, lane, end, tally);
    await store.remote.end(batch.id);
    return tally;
  }

  async #settleFile(batch: BatchRecord, lane: BatchingLane, file: string, tally: Tally): Promise<void> {
    let page: FileLine[] = [];
    let bytes = 0;
    const flush = async (): Promise<void> => {
      if (this.#options.serverOf(lane).isLeft) throw new WayLeft();
      await this.#settlePage(batch, lane, page, tally);
      page = [];
      bytes = 0;
    };
    for await (const line of linesOfFile(file)) {
      page.push(line);
      bytes += line.text.length;
      if (page.length >= PAGE || bytes >= PAGE_BYTES) await flush();
    }
    await flush();
  }

  async #settlePage(
    batch: BatchRecord,
    lane: BatchingLane,
    lines: readonly FileLine[],
    tally: Tally,
  ): Promise<void> {
    const { store } = this.#options;
    const { batches } = lane.remote;
    const named = lines.flatMap(({ text }) => taskIdsIn(text));
    const tasks = await store.remote.tasksOf(batch.id, { taskIds: named, limit: named.length });
    const waiting = new Map<string, PreparedTask>();
    for (const task of tasks) {
      const prepared = this.#options.prepare(task);
      if (!('refused' in prepared)) waiting.set(customIdOf(task), prepared);
    }
    const requestOf = (customId: string): ProviderRequest | null => {
      const prepared = waiting.get(customId);
      if (prepared === undefined) return null;
      const { endpoint, bodyJson } = prepared.request;
      return { endpoint, bodyJson, parts: 1 };
    };
    const settlements: TaskSettlement[] = [];
    for (const line of lines) {
      const read = batches.readLine(line, requestOf);
      if ('malformed' in read) continue;
      // A line of which nobody waits stands there twice, is late, or was settled before a crash.
      const prepared = waiting.get(read.customId);
      if (prepared === undefined) continue;
      waiting.delete(read.customId);
      settlements.push(await this.#settlementOf(read, prepared, batch, lane, tally));
    }
    if (settlements.length > 0) await this.#store(batch, settlements, tally);
  }

  async #settlementOf(
    line: { readonly reply: ProviderReply } | { readonly unrun: string },
    prepared: PreparedTask,
    batch: BatchRecord,
    lane: BatchingLane,
    tally: Tally,
  ): Promise<TaskSettlement> {
    const { task } = prepared;
    if ('unrun' in line || 'aborted' in line.reply)
      return { task, call: null, outcome: released({ task }, null) };
    const atBatchPrice = { ...lane, ...lane.remote };
    const bill = billOf(line.reply, prepared.model, atBatchPrice);
    const finishedAtMs = this.#options.clock.now();
    const judged = await this.#judge(prepared, line.reply, bill, lane);
    const failure = judged.isAnswered ? null : judged.failure;
    if (failure !== null && haltsRun(failure.kind)) tally.halting ??= failure;
    const { billing } = prepared;
    const ended = callEndOf(line.reply, failure, bill, { callId: 0, finishedAtMs, latencyMs: 0 });
    const { callId: _, latencyMs: __, ...end } = ended;
    const { model, mostInputTokens, outputCap } = billing;
    const mostCostMicroUsd = atBatchPrice.mostOf(model, mostInputTokens, outputCap, null);
    const call = {
      ...end,
      startedAtMs: batch.submittedAtMs ?? batch.createdAtMs,
      mostTokens: mostTokensOf(billing),
      mostCostMicroUsd,
    };
    const [outcome] = judged.outcomes;
    if (outcome === undefined) throw new RangeError('a line without an outcome');
    return { task, call, outcome };
  }

  /**
   * Documents that no line told of. What failed the batch fails them; in one that was worked off they may have been
   * answered, and billed; else they were not run.
   */
  async #settleRest(batch: BatchRecord, lane: BatchingLane, end: ShardEnd, tally: Tally): Promise<void> {
    const { store, serverOf } = this.#options;
    const failure = end.failure ?? (end.isComplete ? LINE_MISSING : null);
    while (failure !== null && !haltsRun(failure.kind)) {
      if (serverOf(lane).isLeft) throw new WayLeft();
      const tasks = await store.remote.tasksOf(batch.id, { limit: PAGE });
      if (tasks.length === 0) return;
      const settlements: TaskSettlement[] = [];
      for (const task of tasks) {
        const prepared = this.#options.prepare(task);
        if ('refused' in prepared) {
          settlements.push({ task, call: null, outcome: released({ task }, null) });
          continue;
        }
        const reply = { ok: false, failure, usage: null, costMicroUsd: null, hints: {} } as const;
        const settlement = await this.#settlementOf({ reply }, prepared, batch, lane, tally);
        // A batch that failed was not run, and has no calls.
        settlements.push(end.failure === null ? settlement : withoutCall(settlement));
      }
      await this.#store(batch, settlements, tally);
    }
    for (let returned = PAGE; returned > 0; tally.returned += returned) {
      returned = await store.remote.giveBack(batch.id, PAGE * 10);
    }
  }

  async #store(batch: BatchRecord, settlements: readonly TaskSettlement[], tally: Tally): Promise<void> {
    const { store, onSettled } = this.#options;
    const lost = new Set(await store.remote.settle(batch.id, settlements));
    const kept = settlements.filter(({ task }) => !lost.has(task.taskId));
    for (const { call, outcome } of kept) {
      if (outcome.action === 'completed') tally.completed += 1;
      else if (outcome.action === 'failed') tally.failed += 1;
      else tally.returned += 1;
      if (call === null) continue;
      const most = { costMicroUsd: call.mostCostMicroUsd ?? 0, tokens: call.mostTokens };
      tally.billed = plus(tally.billed, billedFor(call, most, null, null));
    }
    onSettled(kept);
  }

  #judge(prepared: PreparedTask, reply: ProviderReply, bill: Bill, lane: BatchingLane): Promise<Judged> {
    const { clock, random, retry } = this.#options;
    // Other lines fared as they did: nothing that a server does is an outage here, and each failure is an attempt.
    const circumstances = { trouble: null, refusal: null, lane, finishedAtMs: clock.now() };
    return judge([prepared], reply, bill, circumstances, {
      clock,
      random,
      retry,
      throttledSinceMs: ({ throttledForMs }) =>
        throttledForMs === null ? null : clock.monotonicMs() - throttledForMs,
    });
  }
}

function withoutCall({ task, outcome }: TaskSettlement): TaskSettlement {
  return { task, call: null, outcome: { ...outcome, share: null } };
}

/** Of tasks that a line may be about, before it is read whole. */
function taskIdsIn(line: string): number[] {
  return [...line.matchAll(/"custom_id"\s*:\s*"([^"]*)"/g)].flatMap(
    ([, customId = '']) => taskIdOf(customId) ?? [],
  );
}
