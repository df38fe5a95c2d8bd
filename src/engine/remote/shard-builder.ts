/**
 * Makes batches of the documents that are ready: claims them in pages, writes each as a line of the file of its model and
 * endpoint, and hands the task over to that batch. What is held is a page at a time, whatever the input.
 */
import type { BatchRecord } from '../../core/batch-record.js';
import type { Clock } from '../../core/clock.js';
import { errorWithoutCall, type TaskError } from '../../core/outcome.js';
import type { LeasedTask } from '../../core/task.js';
import { batchUrlOf } from '../../endpoints/endpoints.js';
import type { ProviderRequest } from '../../provider/provider.js';
import type { Store } from '../../store/store.js';
import { mostTokensOf, NOTHING_SPENT, type RunBudget } from '../billing.js';
import { type Lacking, plus, type Spending } from '../budget.js';
import type { SettledTask } from '../drain.js';
import { failed, released } from '../judge-reply.js';
import type { BatchingLane } from '../lane.js';
import { type JoinRequests, kindOf, type PreparedTask, type PrepareTask } from '../prepared-task.js';
import { customIdOf } from './custom-id.js';
import { ShardFile } from './shard-file.js';

export interface BuilderOptions {
  readonly store: Store;
  readonly runId: number;
  /** None but these; absent: all of the run. */
  readonly among?: readonly number[] | undefined;
  readonly workerId: string;
  readonly leaseMs: number;
  readonly prepare: PrepareTask;
  readonly join: JoinRequests;
  readonly clock: Clock;
  /** Null: spend what it takes. */
  readonly budget: RunBudget | null;
  /** Of the batch's file. */
  readonly pathOf: (batch: BatchRecord) => string;
  /** The lane that the next batch goes to. */
  readonly nextLane: () => BatchingLane;
  readonly isStopping: () => boolean;
  readonly onSettled: (settled: readonly SettledTask[]) => void;
}

/** Documents claimed at once. */
const PAGE = 200;
/** Lines that wait to be written; images make them large. */
const MOST_WAITING_BYTES = 4 * 1024 * 1024;
/** Batches of different models that are written side by side, each of which has a file open. */
const MOST_OPEN = 16;

interface OpenShard {
  readonly batch: BatchRecord;
  readonly lane: BatchingLane;
  readonly file: ShardFile;
  lines: number;
  bytes: number;
  inputs: number;
  most: Spending;
  waiting: { readonly prepared: PreparedTask; readonly line: string; readonly most: Spending }[];
  waitingBytes: number;
}

export interface BuiltShard {
  readonly batch: BatchRecord;
  readonly most: Spending;
}

export class ShardBuilder {
  readonly #options: BuilderOptions;
  readonly #open = new Map<string, OpenShard>();
  #built: BuiltShard[] = [];
  #lacking: Lacking | null = null;

  constructor(options: BuilderOptions) {
    this.#options = options;
  }

  /** What the budget has too little of for the next document; null while it has enough. */
  get lacking(): Lacking | null {
    return this.#lacking;
  }

  /** @returns the next batch that is ready to be handed in; null when no document is ready, or none may be sent */
  async next(): Promise<BuiltShard | null> {
    const { store, runId, workerId, leaseMs, among, isStopping } = this.#options;
    while (this.#built.length === 0 && !isStopping()) {
      const tasks =
        this.#lacking === null
          ? await store.claimTasks({ runId, workerId, limit: PAGE, leaseMs, among })
          : [];
      for (const [index, task] of tasks.entries()) {
        await this.#add(task);
        if (this.#lacking === null) continue;
        const back = tasks.slice(index).map((each) => released({ task: each }, null));
        await store.record([], [{ call: null, outcomes: back }]);
        break;
      }
      for (const shard of this.#open.values()) await this.#flush(shard);
      if (tasks.length > 0) continue;
      for (const key of [...this.#open.keys()]) await this.#close(key);
      if (this.#built.length === 0) return null;
    }
    return isStopping() ? null : (this.#built.shift() ?? null);
  }

  /** What is being written is given up; its documents go back at the next start, if not before. */
  async discard(): Promise<void> {
    for (const { file } of this.#open.values()) await file.discard();
    this.#open.clear();
  }

  async #add(task: LeasedTask): Promise<void> {
    const prepared = this.#options.prepare(task);
    if ('refused' in prepared) return this.#fail(task, prepared.refused);
    const joined = this.#options.join([prepared]);
    const request = typeof joined === 'function' ? await joined() : joined;
    if ('refused' in request) return this.#fail(task, request.refused);
    const inputs = prepared.grouping?.inputs ?? 1;
    let shard = await this.#shardFor(prepared, request);
    let line = lineOf(prepared, request, shard.lane);
    let bytes = Buffer.byteLength(line);
    const { limits } = shard.lane.remote;
    if (bytes > limits.bytes || inputs > limits.inputs) {
      const error = errorWithoutCall('too_large', 'The request is larger than a whole batch may be.');
      return this.#fail(task, error);
    }
    const isFull =
      shard.lines + 1 > limits.lines ||
      shard.bytes + bytes > limits.bytes ||
      shard.inputs + inputs > limits.inputs;
    if (isFull) {
      await this.#close(kindOf(prepared));
      shard = await this.#shardFor(prepared, request);
      line = lineOf(prepared, request, shard.lane);
      bytes = Buffer.byteLength(line);
    }
    const most = this.#mostOf(prepared, shard.lane);
    this.#lacking = this.#options.budget?.lacking(this.#mostWith(most)) ?? null;
    if (this.#lacking !== null) return;
    shard.lines += 1;
    shard.bytes += bytes;
    shard.inputs += inputs;
    shard.most = plus(shard.most, most);
    shard.waiting.push({ prepared, line, most });
    shard.waitingBytes += bytes;
    if (shard.waitingBytes > MOST_WAITING_BYTES) await this.#flush(shard);
  }

  async #shardFor(prepared: PreparedTask, { endpoint }: ProviderRequest): Promise<OpenShard> {
    const { store, runId, clock, pathOf, nextLane } = this.#options;
    // All lines of a batch are of one model and one address.
    const key = kindOf(prepared);
    const known = this.#open.get(key);
    if (known !== undefined) return known;
    const [oldest] = this.#open.keys();
    if (this.#open.size >= MOST_OPEN && oldest !== undefined) await this.#close(oldest);
    const lane = nextLane();
    const batch = await store.remote.begin({
      runId,
      kind: 'batch',
      lane: lane.name,
      endpoint,
      model: prepared.model,
      createdAtMs: clock.now(),
    });
    const file = await ShardFile.create(pathOf(batch));
    const empty = { lines: 0, bytes: 0, inputs: 0, most: NOTHING_SPENT, waiting: [], waitingBytes: 0 };
    const shard: OpenShard = { batch, lane, file, ...empty };
    this.#open.set(key, shard);
    return shard;
  }

  /** Hands the documents over, and then writes their lines: no line stands in the file of a document that is not its own. */
  async #flush(shard: OpenShard): Promise<void> {
    const { waiting } = shard;
    if (waiting.length === 0) return;
    shard.waiting = [];
    shard.waitingBytes = 0;
    const tasks = waiting.map(({ prepared }) => prepared.task);
    const sum = waiting.reduce((most, each) => plus(most, each.most), NOTHING_SPENT);
    const text = waiting.map(({ line }) => line).join('');
    const lost = await this.#options.store.remote.give(shard.batch.id, tasks, {
      bytes: Buffer.byteLength(text),
      mostTokens: sum.tokens,
      mostCostMicroUsd: sum.costMicroUsd,
    });
    const kept = waiting.filter(({ prepared }) => !lost.includes(prepared.task.taskId));
    await shard.file.write(lost.length === 0 ? text : kept.map(({ line }) => line).join(''));
  }

  async #close(key: string): Promise<void> {
    const shard = this.#open.get(key);
    if (shard === undefined) return;
    const { store } = this.#options;
    await this.#flush(shard);
    if (shard.lines === 0) {
      await shard.file.discard();
      this.#open.delete(key);
      await store.remote.end(shard.batch.id);
      return;
    }
    const fileHash = await shard.file.close();
    await store.remote.note(shard.batch.id, { state: 'built', fileHash });
    this.#open.delete(key);
    this.#options.budget?.setAside(shard.most);
    const { lines, bytes, most } = shard;
    this.#built.push({ batch: { ...shard.batch, state: 'built', fileHash, lines, bytes }, most });
  }

  async #fail(task: LeasedTask, error: TaskError): Promise<void> {
    const outcome = failed({ task }, null, error, this.#options.clock.now());
    await this.#options.store.record([], [{ call: null, outcomes: [outcome] }]);
    this.#options.onSettled([{ task, outcome }]);
  }

  #mostOf({ billing }: PreparedTask, lane: BatchingLane): Spending {
    const { model, mostInputTokens, outputCap } = billing;
    const costMicroUsd = lane.remote.mostOf(model, mostInputTokens, outputCap, null);
    const { budget } = this.#options;
    // Without a price of its own it counts at the standard one, and is refused where a cap could not be kept.
    if (costMicroUsd === null && budget !== null) return budget.mostOf(billing);
    return { costMicroUsd: costMicroUsd ?? 0, tokens: mostTokensOf(billing) };
  }

  /** What all that is being written can be billed, one more document included. */
  #mostWith(most: Spending): Spending {
    return [...this.#open.values()].reduce((sum, shard) => plus(sum, shard.most), most);
  }
}

function lineOf({ task }: PreparedTask, { endpoint, bodyJson }: ProviderRequest, lane: BatchingLane): string {
  const head = JSON.stringify({ custom_id: customIdOf(task), method: 'POST', url: batchUrlOf(endpoint) });
  return `${head.slice(0, -1)},"body":${lane.remote.bodyFor(bodyJson)}}\n`;
}
