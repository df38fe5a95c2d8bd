/**
 * Empties the outbox: takes messages that are due, hands each to its receiver, and notes what came of it. A message whose
 * try was cut off by a crash is due again once nobody has said what came of it; the receiver knows it by its id.
 */
import { type Clock, type Random, WOKEN } from '../../core/clock.js';
import type { WebhookMessage, WebhookTry } from '../../core/served-task.js';
import type { TraceWork } from '../../core/trace-work.js';
import { mayPass } from '../../engine/store-trouble.js';
import type { Store } from '../../store/store.js';
import { GroupCommit } from '../group-commit.js';
import { taskJson } from '../service.js';
import type { AddressGuard } from './address-guard.js';
import { type PostReply, post } from './post.js';
import { signatureHeaders } from './signature.js';

export interface OutboxOptions {
  readonly store: Store;
  readonly guard: AddressGuard;
  readonly secrets: readonly Buffer[];
  readonly clock: Clock;
  readonly random: Random;
  readonly trace: TraceWork;
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Between one try and the next, as the services that wrote Standard Webhooks do: three days in all. */
const DELAYS_MS = [
  ...[5 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS],
  ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_MS),
];
const JITTER = 0.2;
const DEADLINE_MS = 15 * SECOND_MS;
/** Longer than any try, and the commit of what came of it; after a crash it is so long until another begins. */
const HOLD_MS = DEADLINE_MS + 5 * SECOND_MS;
const MOST_OPEN = 64;
/** Tasks may be ended by other processes, which nobody tells us of. */
const LOOK_EVERY_MS = SECOND_MS;

export class WebhookOutbox {
  readonly #options: OutboxOptions;
  readonly #tries: GroupCommit<WebhookTry, undefined>;
  readonly #open = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  #waiting: AbortController | null = null;
  #isWoken = false;
  #crash: { readonly error: unknown } | null = null;

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#tries = new GroupCommit(async (tries) => {
      await options.store.served.noteWebhooks(tries);
      return tries.map(() => undefined);
    }, MOST_OPEN);
  }

  /** Something may be due. */
  wake(): void {
    this.#isWoken = true;
    this.#waiting?.abort(WOKEN);
  }

  /** Tries that are open are ended, and what came of them is noted. */
  stop(): void {
    this.#stopping.abort(WOKEN);
    this.wake();
  }

  /** Until it is stopped. @throws LlmBatchError (exit 5) where the store cannot be used any more */
  async run(): Promise<void> {
    while (!this.#stopping.signal.aborted && this.#crash === null) {
      const messages = await this.#take().catch((error: unknown) => this.#outlast(error, []));
      for (const message of messages) {
        const delivery = this.#deliver(message).catch((error: unknown) => this.#outlast(error, undefined));
        this.#open.add(delivery);
        void delivery.then(() => {
          this.#open.delete(delivery);
          this.wake();
        });
      }
      if (messages.length === 0) await this.#wait();
    }
    await Promise.all(this.#open);
    if (this.#crash !== null) throw this.#crash.error;
  }

  async #take(): Promise<readonly WebhookMessage[]> {
    const { served } = this.#options.store;
    const room = MOST_OPEN - this.#open.size;
    // To look is cheap, to take is a commit.
    return room > 0 && (await served.nextWebhookMs()) === 0 ? served.takeWebhooks(room, HOLD_MS) : [];
  }

  /** A message of which nothing could be noted is due again after a while. */
  #outlast<Value>(error: unknown, otherwise: Value): Value {
    if (!mayPass(error)) this.#crash ??= { error };
    return otherwise;
  }

  async #wait(): Promise<void> {
    if (!this.#isWoken && !this.#stopping.signal.aborted) {
      this.#waiting = new AbortController();
      await this.#options.clock.sleep(LOOK_EVERY_MS, this.#waiting.signal);
      this.#waiting = null;
    }
    this.#isWoken = false;
  }

  async #deliver(message: WebhookMessage): Promise<void> {
    const { store } = this.#options;
    const [row] = await store.readTasks(message.runId, [message.taskId], false);
    const { taskId, messageId } = message;
    // It was retried since, or its run was deleted.
    const isOver = row === undefined || ['ready', 'delayed', 'in_progress'].includes(row.state);
    if (isOver) {
      return this.#tries.add({ taskId, messageId, outcome: 'withdrawn', httpStatus: null, problem: null });
    }
    const reply = await this.#try(message, taskJson(message.publicId, row));
    await this.#tries.add({ taskId, messageId, outcome: this.#outcomeOf(message, reply), ...reply });
  }

  #try({ url, messageId, traceparent: origin }: WebhookMessage, body: string): Promise<PostReply> {
    const { guard, secrets, clock, trace } = this.#options;
    // The operator may have taken a host off his list since.
    const refusal = guard.refuse(url);
    if (refusal !== null) return Promise.resolve({ httpStatus: null, problem: `the address ${refusal}` });
    const timestamp = Math.floor(clock.now() / SECOND_MS);
    return trace('POST webhook', origin, (traceparent) =>
      post(url, {
        headers: {
          'content-type': 'application/json; charset=utf-8',
          'user-agent': 'llm-batch',
          ...(traceparent === null ? {} : { traceparent }),
          ...signatureHeaders(secrets, { messageId, timestamp, body }),
        },
        body,
        lookup: guard.lookupFor(url),
        deadlineMs: DEADLINE_MS,
        clock,
      }),
    );
  }

  #outcomeOf({ attempts }: WebhookMessage, { problem, httpStatus }: PostReply): WebhookTry['outcome'] {
    if (problem === null) return 'delivered';
    if (httpStatus === 410) return 'gone';
    const delayMs = DELAYS_MS[attempts];
    return delayMs === undefined ? 'parked' : { againInMs: delayMs * (1 + JITTER * this.#options.random()) };
  }
}
