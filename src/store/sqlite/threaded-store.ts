/**
 * The store in an SQLite file, on a thread of its own: who sends calls and reads answers never waits for the disk or for a
 * statement. All that crosses is plain data, so that no method is named here.
 */
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import { unpackError } from '../../core/carried-error.js';
import { EXIT_CODES, LlmBatchError } from '../../core/errors.js';
import type { Json } from '../../core/json.js';
import type { MigrationStep, Store } from '../store.js';
import { type FromThread, OPENING_ID, type PortShape, type ThreadOptions } from './thread-messages.js';

export interface ThreadedOptions extends Omit<ThreadOptions, 'path'> {
  readonly onMigration?: (step: MigrationStep) => void;
}

/** What cannot be sent to another thread. */
type Uncarried = { readonly uncarried: unique symbol };

type Carried<Value> = Value extends (...parameters: never[]) => unknown
  ? Uncarried
  : Value extends Uint8Array | Json
    ? Value
    : Value extends object
      ? { readonly [Key in keyof Value]: Carried<Value[Key]> }
      : Value;

/** A port as it is on the other side: the same, unless there is something in it that cannot be sent. */
type CarriedPort<Port> = Port extends (...parameters: infer Parameters) => Promise<infer Value>
  ? (...parameters: Carried<Parameters> & unknown[]) => Promise<Carried<Value>>
  : Port extends object
    ? { readonly [Name in keyof Port]: CarriedPort<Port[Name]> }
    : Port;

/**
 * Opens the store as `openSqliteStore` does, by the system's clock.
 * @throws LlmBatchError as that, and STORE_THREAD_ENDED (exit 5), as every method from then on
 */
export async function openThreadedStore(path: string, options: ThreadedOptions): Promise<Store> {
  const thread = new StoreThread(path, options);
  const store = portOf((await thread.opened) as PortShape, '', thread) as CarriedPort<Store>;
  return { ...store, close: () => thread.close() };
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

class StoreThread {
  readonly opened: Promise<unknown>;
  readonly #worker: Worker;
  readonly #ended: Promise<void>;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = OPENING_ID;
  #end: LlmBatchError | null = null;

  constructor(path: string, options: ThreadedOptions) {
    const { mode, create, workingFolder } = options;
    const workerData: ThreadOptions = { path, mode, create, workingFolder };
    // Tests run the TypeScript source, but a thread needs the built file; package.json says where that is.
    const file = createRequire(import.meta.url).resolve('#store-thread');
    // Nothing from the user's environment, least of all a key.
    this.#worker = new Worker(file, { workerData, env: {} });
    this.opened = this.#answerTo(OPENING_ID);
    let cause: unknown;
    this.#worker.on('error', (error) => {
      cause = error;
    });
    this.#worker.on('message', (message: FromThread) => {
      if ('migration' in message) options.onMigration?.(message.migration);
      else this.#settle(message);
    });
    this.#ended = new Promise((resolve) => {
      this.#worker.once('exit', () => {
        this.#end = ended(path, cause);
        for (const { reject } of this.#waiting.values()) reject(this.#end);
        this.#waiting.clear();
        resolve();
      });
    });
  }

  async ask(method: string, parameters: readonly unknown[]): Promise<unknown> {
    if (this.#end !== null) throw this.#end;
    this.#lastId += 1;
    this.#worker.postMessage({ id: this.#lastId, method, parameters });
    return this.#answerTo(this.#lastId);
  }

  /** Resolves once the thread is gone, and with it all that it had open. */
  async close(): Promise<void> {
    // Of a thread that has ended by itself those were told who had asked for something.
    await this.ask('close', []).catch(() => undefined);
    this.#worker.ref();
    await this.#ended;
  }

  /** Only who waits for an answer is kept alive. */
  #answerTo(id: number): Promise<unknown> {
    this.#worker.ref();
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
    });
  }

  #settle(message: Exclude<FromThread, { migration: unknown }>): void {
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (this.#waiting.size === 0) this.#worker.unref();
    if ('error' in message) waiting?.reject(unpackError(message.error));
    else waiting?.resolve(message.value);
  }
}

function portOf({ facts, methods, parts }: PortShape, path: string, thread: StoreThread): unknown {
  const asking = methods.map((name) => [
    name,
    (...parameters: readonly unknown[]) => thread.ask(path + name, parameters),
  ]);
  const inner = Object.entries(parts).map(([name, part]) => [name, portOf(part, `${path}${name}.`, thread)]);
  return { ...facts, ...Object.fromEntries([...asking, ...inner]) };
}

function ended(path: string, cause: unknown): LlmBatchError {
  const reason = cause instanceof Error ? `: ${cause.message}` : '';
  return new LlmBatchError(`The thread that keeps ${path} has ended${reason}.`, {
    code: 'STORE_THREAD_ENDED',
    exitCode: EXIT_CODES.store,
    hint: 'What was committed is safe: go on with `llm-batch resume`.',
    cause,
  });
}
