/**
 * Requests about batches and background responses, each made until it is answered: what a server or a network does
 * meanwhile is waited out, as long as the run may wait for a server at all.
 */
import type { BatchRecord } from '../../core/batch-record.js';
import type { Clock, Random } from '../../core/clock.js';
import { EXIT_CODES, LlmBatchError } from '../../core/errors.js';
import type { FailureKind, ProviderFailure } from '../../core/failure.js';
import { backoffMs, haltsRun, isTrouble } from '../../core/retry-decision.js';
import type { SendOptions } from '../../provider/provider.js';
import type { RemoteReply } from '../../provider/remote-batches.js';

/** The way is left: the user has asked to stop. What was begun is gone on with at the next start. */
export class WayLeft extends Error {}

/** A server has answered, and will not do what it was asked. */
export class BatchRefused extends Error {
  /** @param isInDoubt what was asked for may be there all the same */
  constructor(
    readonly failure: ProviderFailure,
    readonly isInDoubt = false,
  ) {
    super(failure.message);
  }

  /** It concerns whatever is asked there. */
  get haltsRun(): boolean {
    const { kind } = this.failure;
    return haltsRun(kind) || mayPass(kind);
  }
}

export interface ServerOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly timeoutMs: number;
  /** How long a server may be gone. */
  readonly maxWaitMs: number;
}

const FIRST_WAIT_MS = 1_000;
/** So that what was handed in together is not asked for together. */
const JITTER = 0.2;

export class Server {
  readonly #options: ServerOptions;
  readonly #open = new Set<AbortController>();
  readonly #sleepers = new Set<AbortController>();
  #left = false;
  #silentSinceMs: number | null = null;

  constructor(options: ServerOptions) {
    this.#options = options;
  }

  /** Since when (monotonic) it has answered nothing that was asked; null while it does. */
  get silentSinceMs(): number | null {
    return this.#silentSinceMs;
  }

  get isLeft(): boolean {
    return this.#left;
  }

  get openRequests(): number {
    return this.#open.size;
  }

  /** Nothing new is asked; what is open may end. */
  leave(): void {
    this.#left = true;
    this.wake();
  }

  /** Cuts off what is open. */
  abort(): void {
    this.leave();
    for (const controller of this.#open) controller.abort();
  }

  /** Ends every wait. */
  wake(): void {
    for (const sleeper of this.#sleepers) sleeper.abort();
  }

  /** @throws WayLeft */
  async sleep(delayMs: number): Promise<void> {
    const sleeper = new AbortController();
    this.#sleepers.add(sleeper);
    if (!this.#left) await this.#options.clock.sleep(delayMs, sleeper.signal);
    this.#sleepers.delete(sleeper);
    if (this.#left) throw new WayLeft();
  }

  /** Asks once. @throws WayLeft before it is asked, or where it was cut off */
  async once<Value>(
    request: (options: SendOptions) => Promise<RemoteReply<Value>>,
  ): Promise<Exclude<RemoteReply<Value>, { readonly aborted: true }>> {
    if (this.#left) throw new WayLeft();
    const controller = new AbortController();
    this.#open.add(controller);
    const { timeoutMs, clock } = this.#options;
    const askedAtMs = clock.monotonicMs();
    try {
      const reply = await request({ timeoutMs, signal: controller.signal });
      if ('aborted' in reply) throw new WayLeft();
      if (reply.ok || !isTrouble(reply.failure.kind)) this.#silentSinceMs = null;
      else this.#silentSinceMs ??= askedAtMs;
      return reply;
    } finally {
      this.#open.delete(controller);
    }
  }

  /**
   * Asks until there is an answer; for what may be asked twice.
   * @throws BatchRefused, WayLeft
   */
  async ask<Value>(request: (options: SendOptions) => Promise<RemoteReply<Value>>): Promise<Value> {
    const sinceMs = this.#options.clock.monotonicMs();
    for (let failures = 0; ; failures += 1) {
      const reply = await this.once(request);
      if (reply.ok) return reply.value;
      await this.waitAfter(reply.failure, failures, sinceMs);
    }
  }

  /**
   * Waits out what may pass.
   * @param failures before this one
   * @param sinceMs monotonic time of the first try
   * @throws BatchRefused for what does not pass, or has not for too long
   */
  async waitAfter(failure: ProviderFailure, failures: number, sinceMs: number): Promise<void> {
    const { clock, random, maxWaitMs } = this.#options;
    if (!mayPass(failure.kind) || clock.monotonicMs() - sinceMs >= maxWaitMs) throw new BatchRefused(failure);
    await this.sleep(Math.max(failure.retryAfterMs ?? 0, backoffMs(failures, FIRST_WAIT_MS, random)));
  }
}

function mayPass(kind: FailureKind): boolean {
  return kind === 'rate_limited' || isTrouble(kind);
}

export function jittered(delayMs: number, random: Random): number {
  return delayMs * (1 - JITTER + 2 * JITTER * random());
}

/** A `catch` after which what was asked for may be there. */
export function inDoubt(error: unknown): never {
  throw error instanceof BatchRefused ? new BatchRefused(error.failure, true) : error;
}

/** For what a server may refuse: a `catch` that lets nothing else pass. */
export function isRefused(error: unknown): void {
  if (!(error instanceof BatchRefused)) throw error;
}

/** What a run has at a provider whom it does not name any more. */
export function laneMissing({ kind, lane, shard }: BatchRecord): LlmBatchError {
  const what = kind === 'batch' ? `Shard ${shard}` : 'A background response';
  return new LlmBatchError(`${what} of this run is with '${lane}', which the run names no more.`, {
    code: 'BATCH_LANE_MISSING',
    exitCode: EXIT_CODES.halted,
    facts: { lane },
  });
}
