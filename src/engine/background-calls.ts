/**
 * Calls that servers work on in the background: their answers are asked for, ever more seldom, until they are there, and
 * are removed at the server once they are stored.
 *
 *   created ──id committed──▶ open ──asked for──▶ ended ──judged and stored as any answer──▶ removed
 *                              │  └── not there any more ──▶ the document is tried again
 *                              └── a stop leaves it there: whoever drains next goes on with it
 */
import type { Clock, Random } from '../core/clock.js';
import type { ProviderFailure } from '../core/failure.js';
import type { ProviderReply, ProviderRequest } from '../provider/provider.js';
import type { RemoteResponses, ResponseReply } from '../provider/remote-responses.js';
import { BatchRefused, isRefused, jittered, Server, WayLeft } from './remote/server.js';

export interface BackgroundOptions {
  /**
   * `collect`: new calls do not go in the background, what is there is fetched; `cancel`: nothing new is sent, and what is
   * there is cancelled before it is fetched.
   */
  readonly task: 'send' | 'collect' | 'cancel';
  /** Null: from `POLL_MS.first` on, ever more seldom. */
  readonly pollIntervalMs: number | null;
  /** Nothing is removed at the server. */
  readonly keepRemote: boolean;
}

export interface BackgroundContext extends BackgroundOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Of one request. */
  readonly timeoutMs: number;
  /** How long a server may be gone. */
  readonly maxWaitMs: number;
  /** A response could not be removed at its server. */
  readonly onKept: (failure: ProviderFailure) => void;
}

/** A response where it is. */
export interface PlacedResponse {
  readonly responses: RemoteResponses;
  readonly remoteId: string;
}

/** It goes on at the server; null: since the run stops, else why nobody can ask for it any more. */
export interface LeftResponse {
  readonly isLeft: true;
  readonly failure: ProviderFailure | null;
}

const POLL_MS = { first: 1_000, longest: 30_000, growth: 1.5 } as const;
/** One that was just created may not be found yet. */
const LOOKS_BEFORE_GONE = 2;
/** It goes by itself after a month, so that it is not worth more. */
const LONGEST_REMOVAL_MS = 30_000;

/** It may have been answered, and billed, and nobody can know. */
const GONE: ProviderReply = {
  ok: false,
  failure: { kind: 'overloaded', message: 'The server does not have the response any more' },
  usage: null,
  costMicroUsd: null,
  hints: {},
};

export class BackgroundCalls {
  readonly #context: BackgroundContext;
  readonly #server: Server;
  readonly #remover: Server;
  readonly #removals = new Set<Promise<void>>();
  #open = 0;

  constructor(context: BackgroundContext) {
    this.#context = context;
    this.#server = new Server(context);
    this.#remover = new Server({ ...context, maxWaitMs: LONGEST_REMOVAL_MS });
  }

  get task(): BackgroundOptions['task'] {
    return this.#context.task;
  }

  /** Responses that are waited for. */
  get open(): number {
    return this.#open;
  }

  /** Requests that have not come back. */
  get openRequests(): number {
    return this.#server.openRequests + this.#remover.openRequests;
  }

  /** What is at servers is left there. */
  leave(): void {
    this.#server.leave();
  }

  /** That, and what is being asked is cut off. */
  abort(): void {
    this.#server.abort();
    this.#remover.abort();
  }

  /**
   * Asks for a response until it has ended. Trouble of its server is waited out, as long as the run may wait for one.
   * @param isOld it was created by an earlier process, so that it may have ended long since
   */
  async answerOf(
    placed: PlacedResponse,
    request: ProviderRequest,
    isOld: boolean,
  ): Promise<ProviderReply | LeftResponse> {
    this.#open += 1;
    try {
      return await this.#untilEnded(placed, request, isOld);
    } catch (error) {
      if (error instanceof WayLeft) return { isLeft: true, failure: null };
      if (error instanceof BatchRefused) return { isLeft: true, failure: error.failure };
      throw error;
    } finally {
      this.#open -= 1;
    }
  }

  async #untilEnded(
    { responses, remoteId }: PlacedResponse,
    request: ProviderRequest,
    isOld: boolean,
  ): Promise<ProviderReply> {
    // One that has ended meanwhile cannot be cancelled any more.
    if (this.#context.task === 'cancel')
      await this.#server.ask((options) => responses.cancel(remoteId, request, options)).catch(isRefused);
    let missed = 0;
    for (let polls = 0; ; polls += 1) {
      if (!(isOld && polls === 0)) await this.#server.sleep(this.#pollDelayMs(polls));
      const reply = await this.#server
        .ask((options) => responses.retrieve(remoteId, request, options))
        .catch((error: unknown): ResponseReply | null => {
          if (error instanceof BatchRefused && isGone(error.failure)) return null;
          throw error;
        });
      missed = reply === null ? missed + 1 : 0;
      if (missed === LOOKS_BEFORE_GONE) return GONE;
      if (reply !== null && !('isOpen' in reply)) return reply;
    }
  }

  /**
   * Removes a response at its server, where nobody asks for it any more.
   * @param onRemoved also where it stays there and nothing can be done about it
   */
  remove({ responses, remoteId }: PlacedResponse, onRemoved: () => void = () => undefined): void {
    const removal = this.#remove(responses, remoteId)
      .then((isDone) => {
        if (isDone) onRemoved();
      })
      .finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
  }

  async #remove(responses: RemoteResponses, remoteId: string): Promise<boolean> {
    if (this.#context.keepRemote) return true;
    try {
      await this.#remover.ask((options) => responses.remove(remoteId, options));
    } catch (error) {
      if (error instanceof WayLeft) return false;
      if (!(error instanceof BatchRefused)) throw error;
      if (!isGone(error.failure)) this.#context.onKept(error.failure);
    }
    return true;
  }

  /** Resolves when nothing is being removed. */
  async idle(): Promise<void> {
    while (this.#removals.size > 0) await Promise.all(this.#removals);
  }

  #pollDelayMs(polls: number): number {
    const { pollIntervalMs, random } = this.#context;
    const { first, longest, growth } = POLL_MS;
    const delayMs = pollIntervalMs ?? Math.min(longest, first * growth ** Math.min(polls, 20));
    return jittered(delayMs, random);
  }
}

function isGone({ httpStatus }: ProviderFailure): boolean {
  return httpStatus === 404 || httpStatus === 410;
}
