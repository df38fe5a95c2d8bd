/** A provider's Batch API inside the test, on the test's clock: what it was given, what it made of it, what it was asked. */
import { readFile, writeFile } from 'node:fs/promises';
import type { ProviderFailure } from '../../src/core/failure.js';
import type { ProviderReply } from '../../src/provider/provider.js';
import type {
  FileLine,
  NewRemoteBatch,
  RemoteBatch,
  RemoteBatches,
  RemoteLine,
  RemoteReply,
} from '../../src/provider/remote-batches.js';
import type { FakeClock } from './fake-clock.js';

export interface FakeLine {
  readonly customId: string;
  readonly url: string;
  readonly model: string;
  readonly text: string;
}

/** What becomes of one line: its answer's text, a failure, not run, or no line at all. */
export type FakeFate =
  | string
  | { readonly failure: ProviderFailure }
  | 'unrun'
  | 'missing'
  | 'malformed'
  | 'twice';

interface FakeBatch {
  readonly id: string;
  readonly asked: NewRemoteBatch;
  readonly lines: readonly FakeLine[];
  readonly createdAtMs: number;
  cancelledAtMs: number | null;
  /** It never begins. */
  readonly isQueueFull: boolean;
}

export interface FakeBatchesOptions {
  readonly clock: FakeClock;
  /** Until a batch is completed. */
  readonly durationMs?: number;
  /** Batches that it works on at once; a further one fails for a full queue. */
  readonly room?: number;
  readonly fateOf?: (line: FakeLine) => FakeFate;
  /** Why every batch fails as a whole. */
  readonly failure?: ProviderFailure;
  /** Creations that nobody hears the answer of, by their number from 1 on. */
  readonly unheard?: readonly number[];
  /** Of a batch that is worked off; default `completed`. */
  readonly ending?: 'completed' | 'expired';
}

export const NETWORK: ProviderFailure = { kind: 'network', message: 'socket hang up' };

export class FakeBatches implements RemoteBatches {
  readonly created: FakeBatch[] = [];
  readonly uploads: string[] = [];
  readonly polledAtMs: number[] = [];
  readonly cancelled: string[] = [];
  readonly deleted: string[] = [];
  readonly #options: FakeBatchesOptions;
  readonly #files = new Map<string, string>();
  #creations = 0;
  /** Answers that were worked off, each billed once. */
  readonly billed = new Map<string, number>();

  constructor(options: FakeBatchesOptions) {
    this.#options = options;
  }

  /** Batches that were accepted, by the file that they are of. */
  get accepted(): readonly FakeBatch[] {
    return this.created.filter(({ isQueueFull }) => !isQueueFull);
  }

  async upload(path: string): Promise<RemoteReply<string>> {
    const text = await readFile(path, 'utf8');
    const id = `file-${this.#files.size + 1}`;
    this.#files.set(id, text);
    this.uploads.push(text);
    return { ok: true, value: id };
  }

  async create(asked: NewRemoteBatch): Promise<RemoteReply<RemoteBatch>> {
    this.#creations += 1;
    const { clock, room = Number.POSITIVE_INFINITY, unheard = [] } = this.#options;
    const lines = (this.#files.get(asked.inputFileId) ?? '').split('\n').filter((line) => line !== '');
    const working = this.accepted.filter((batch) => !this.#hasEnded(batch)).length;
    const batch: FakeBatch = {
      id: `batch-${this.created.length + 1}`,
      asked,
      lines: lines.map(readRequest),
      createdAtMs: clock.now(),
      cancelledAtMs: null,
      isQueueFull: working >= room,
    };
    this.created.push(batch);
    if (unheard.includes(this.#creations)) return { ok: false, failure: NETWORK };
    return { ok: true, value: this.#seen(batch) };
  }

  async retrieve(id: string): Promise<RemoteReply<RemoteBatch>> {
    this.polledAtMs.push(this.#options.clock.now());
    return { ok: true, value: this.#seen(this.#batch(id)) };
  }

  async find(metadata: Readonly<Record<string, string>>): Promise<RemoteReply<RemoteBatch | null>> {
    const found = this.created.find(
      ({ asked }) => JSON.stringify(asked.metadata) === JSON.stringify(metadata),
    );
    return { ok: true, value: found === undefined ? null : this.#seen(found) };
  }

  async cancel(id: string): Promise<RemoteReply<RemoteBatch>> {
    const batch = this.#batch(id);
    batch.cancelledAtMs ??= this.#options.clock.now();
    this.cancelled.push(id);
    return { ok: true, value: this.#seen(batch) };
  }

  async download(fileId: string, path: string): Promise<RemoteReply<null>> {
    const [, kind, id = ''] = /^(output|error)-of-(.*)$/.exec(fileId) ?? [];
    const batch = this.#batch(id);
    const texts = batch.lines.flatMap((line, index) => {
      const isRun = batch.cancelledAtMs === null || index % 2 === 0;
      return this.#outputOf(line, isRun ? this.#fateOf(line) : 'unrun', kind === 'error');
    });
    // In any order: the last comes first.
    await writeFile(path, texts.reverse().join('\n'));
    return { ok: true, value: null };
  }

  async deleteFile(fileId: string): Promise<RemoteReply<null>> {
    this.deleted.push(fileId);
    return { ok: true, value: null };
  }

  readLine({ text: line }: FileLine): RemoteLine {
    let read: { custom_id: string; text?: string; failure?: ProviderFailure };
    try {
      read = JSON.parse(line) as typeof read;
    } catch {
      return { malformed: 'no JSON' };
    }
    const { custom_id: customId, text, failure } = read;
    if (failure !== undefined)
      return { customId, reply: { ok: false, failure, usage: null, costMicroUsd: null, hints: {} } };
    if (text === undefined) return { customId, unrun: 'batch_expired' };
    return { customId, reply: answered(text) };
  }

  #outputOf(line: FakeLine, fate: FakeFate, isErrorFile: boolean): string[] {
    const { customId } = line;
    const isError = fate === 'unrun' || typeof fate === 'object';
    if (isError !== isErrorFile || fate === 'missing') return [];
    if (fate === 'malformed') return [`{"custom_id":"${customId}","tex`];
    if (fate === 'unrun') return [JSON.stringify({ custom_id: customId })];
    if (typeof fate === 'object') return [JSON.stringify({ custom_id: customId, ...fate })];
    this.billed.set(customId, TOKENS.outputTokens);
    const text = JSON.stringify({ custom_id: customId, text: fate === 'twice' ? line.text : fate });
    return fate === 'twice' ? [text, text] : [text];
  }

  #fateOf(line: FakeLine): FakeFate {
    return this.#options.fateOf?.(line) ?? `answer to ${line.text}`;
  }

  #hasEnded({ createdAtMs, cancelledAtMs }: FakeBatch): boolean {
    const { clock, durationMs = 60_000 } = this.#options;
    return cancelledAtMs !== null || clock.now() >= createdAtMs + durationMs;
  }

  #seen(batch: FakeBatch): RemoteBatch {
    const { failure = null, ending = 'completed' } = this.#options;
    const base = {
      ...{ id: batch.id, createdAtMs: batch.createdAtMs, metadata: batch.asked.metadata },
      ...{ outputFileId: null, errorFileId: null, failure: null, isQueueFull: false },
      counts: { total: batch.lines.length, completed: 0, failed: 0 },
    };
    if (batch.isQueueFull) {
      const full = { kind: 'rate_limited', message: 'Enqueued token limit reached' } as const;
      return { ...base, state: 'failed', failure: full, isQueueFull: true };
    }
    if (failure !== null) return { ...base, state: 'failed', failure };
    if (!this.#hasEnded(batch)) return { ...base, state: 'in_progress' };
    return {
      ...base,
      state: batch.cancelledAtMs === null ? ending : 'cancelled',
      counts: { total: batch.lines.length, completed: batch.lines.length, failed: 0 },
      outputFileId: `output-of-${batch.id}`,
      errorFileId: `error-of-${batch.id}`,
    };
  }

  #batch(id: string): FakeBatch {
    const found = this.created.find((batch) => batch.id === id);
    if (found === undefined) throw new Error(`nobody created ${id}`);
    return found;
  }
}

const TOKENS = { inputTokens: 10, outputTokens: 1, cachedTokens: 0, reasoningTokens: 0 };

function answered(text: string): ProviderReply {
  return {
    ok: true,
    parts: [{ ok: true, outputJson: JSON.stringify(text), text, finishReason: 'stop' }],
    ...{ model: 'model-1', usage: TOKENS, costMicroUsd: null, httpStatus: 200, requestId: 'r-1', hints: {} },
  };
}

function readRequest(line: string): FakeLine {
  const { custom_id, url, body } = JSON.parse(line) as {
    custom_id: string;
    url: string;
    body: { model: string; messages: readonly { content: string }[] };
  };
  return { customId: custom_id, url, model: body.model, text: body.messages.at(-1)?.content ?? '' };
}
