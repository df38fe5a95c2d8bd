/**
 * How many calls of a run may be open now: as many as the user says, or as bring answers, but no more than this machine
 * has connections for, and the run's part of them where others go to the same servers.
 */
import type { CallEnd } from '../core/call.js';
import type { ProviderFailure } from '../core/failure.js';
import { type ConcurrencyController, createConcurrencyController } from './concurrency.js';

/** When this machine could open no more connections, no more are tried for so long. */
const FEWER_CONNECTIONS_MS = 60_000;

export class CallLimit {
  readonly #fixed: number;
  /** Null: the limit is fixed. */
  readonly #controller: ConcurrencyController | null;
  readonly #mostConnections: number;
  #fewerConnections: { readonly most: number; readonly untilMs: number } | null = null;
  /** Runs that share it, this one among them. */
  sharedBy = 1;

  /** @param concurrency `auto`: follows what brings answers */
  constructor(concurrency: number | 'auto', mostConnections: number) {
    this.#fixed = Number(concurrency);
    this.#controller = concurrency === 'auto' ? createConcurrencyController() : null;
    this.#mostConnections = mostConnections;
  }

  get now(): number {
    const wanted = this.#controller?.limit() ?? this.#fixed;
    const most = Math.min(wanted, this.#mostConnections, this.#fewerConnections?.most ?? wanted);
    return Math.max(1, Math.floor(most / this.sharedBy));
  }

  /** @param openCalls that are still open, now that one has ended */
  noteConnections(failure: ProviderFailure | null, openCalls: number, nowMs: number): void {
    if (failure?.shortOf === 'connections') {
      // Of calls that leave together some get a connection and the others fail: those that are still open are as many
      // as this machine has room for.
      const most = Math.max(1, Math.min(this.now, openCalls));
      this.#fewerConnections = { most, untilMs: nowMs + FEWER_CONNECTIONS_MS };
    } else if (nowMs >= (this.#fewerConnections?.untilMs ?? 0)) this.#fewerConnections = null;
  }

  /** @param call of a server that is not gone: one that is says nothing of how much it can do */
  noteLatency(call: CallEnd | null, failure: ProviderFailure | null, nowMs: number): void {
    if (this.#controller === null || call === null || call.kind === 'aborted') return;
    // A refusal for quota says nothing of how many calls the server can work on side by side, nor does this machine.
    if (failure?.kind === 'rate_limited' || failure?.shortOf !== undefined) return;
    const couldNotCope = failure?.kind === 'overloaded' || failure?.kind === 'timeout';
    this.#controller.observe(call.latencyMs, !couldNotCope, nowMs);
  }
}
