/**
 * The store in an SQLite file, on a thread of its own: who sends calls and reads answers never waits for the disk or for a
 * statement. All that crosses is plain data, so that no method is named here.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { type MessagePort, Worker } from 'node:worker_threads';
import { unpackError } from '../../core/carried-error.js';
import { EXIT_CODES, LlmBatchError } from '../../core/errors.js';
import type { Json } from '../../core/json.js';
import type { MigrationStep, Store } from '../store.js';
import {
  type FromThread,
  OPENING_ID,
  type PortShape,
  type ThreadOptions,
  type ToThread,
} from './thread-messages.js';

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
 * @throws LlmBatchError as that, and STORE_THREAD_ENDED (exit 5), as every method does once the thread has ended
 */
export function openThreadedStore(path: string, options: ThreadedOptions): Promise<Store> {
  const { mode, create, workingFolder, onMigration } = options;
  const workerData: ThreadOptions = { path, mode, create, workingFolder };
  // Nothing from the user's environment, least of all a key.
  const worker = new Worker(threadFile(), { workerData, env: {} });
  const ended = new Promise<LlmBatchError>((resolve) => {
    let cause: unknown;
    worker.once('error', (error) => {
      cause = error;
    });
    worker.once('exit', () => resolve(threadEnded(path, cause)));
  });
  return storeBehind(worker, ended, onMigration);
}

/** Of a thread, or of a port to whatever serves the store. */
type Line = Pick<MessagePort, 'postMessage' | 'ref' | 'unref'> & {
  on(event: 'message', listener: (message: FromThread) => void): unknown;
};

/** @param ended resolves when no answer comes any more, with what is told to those that wait for one */
export async function storeBehind(
  line: Line,
  ended: Promise<LlmBatchError>,
  onMigration?: (step: MigrationStep) => void,
): Promise<Store> {
  const asked = new Asked(line, ended, onMigration);
  const store = portOf((await asked.opened) as PortShape, '', asked) as CarriedPort<Store>;
  return {
    ...store,
    async close() {
      // Of a thread that has ended by itself those were told who had asked for something.
      await store.close().catch(() => undefined);
      line.ref();
      await ended;
    },
  };
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** What was asked of the other side and has no answer yet. */
class Asked {
  readonly opened: Promise<unknown>;
  readonly #line: Line;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = OPENING_ID;
  #end: LlmBatchError | null = null;

  constructor(line: Line, ended: Promise<LlmBatchError>, onMigration?: (step: MigrationStep) => void) {
    this.#line = line;
    this.opened = this.#answerTo(OPENING_ID);
    line.on('message', (message) => {
      if ('migration' in message) onMigration?.(message.migration);
      else this.#settle(message);
    });
    ended.then((end) => {
      this.#end = end;
      for (const { reject } of this.#waiting.values()) reject(end);
      this.#waiting.clear();
    });
  }

  /** @throws what the method throws, or that the thread has ended */
  async ask(method: string, parameters: readonly unknown[]): Promise<unknown> {
    if (this.#end !== null) throw this.#end;
    this.#lastId += 1;
    const message: ToThread = { id: this.#lastId, method, parameters };
    this.#line.postMessage(message);
    return this.#answerTo(this.#lastId);
  }

  /** Only who waits for an answer is kept alive. */
  #answerTo(id: number): Promise<unknown> {
    this.#line.ref();
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
    });
  }

  #settle(message: Exclude<FromThread, { migration: MigrationStep }>): void {
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (this.#waiting.size === 0) this.#line.unref();
    if ('error' in message) waiting?.reject(unpackError(message.error));
    else waiting?.resolve(message.value);
  }
}

function portOf({ facts, methods, parts }: PortShape, path: string, asked: Asked): unknown {
  const asking = methods.map((name) => [
    name,
    (...parameters: readonly unknown[]) => asked.ask(path + name, parameters),
  ]);
  const inner = Object.entries(parts).map(([name, part]) => [name, portOf(part, `${path}${name}.`, asked)]);
  return { ...facts, ...Object.fromEntries([...asking, ...inner]) };
}

/** A thread needs a built file, which stands beside this one only where that is built too: package.json says where it is. */
function threadFile(): string {
  const beside = fileURLToPath(new URL('thread.js', import.meta.url));
  return existsSync(beside) ? beside : createRequire(import.meta.url).resolve('#store-thread');
}

function threadEnded(path: string, cause: unknown): LlmBatchError {
  const reason = cause instanceof Error ? `: ${cause.message}` : '';
  return new LlmBatchError(`The thread that keeps ${path} has ended${reason}.`, {
    code: 'STORE_THREAD_ENDED',
    exitCode: EXIT_CODES.store,
    hint: 'Go on with `llm-batch resume`; what was committed is safe.',
    cause,
  });
}
