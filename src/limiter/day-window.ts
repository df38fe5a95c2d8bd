import type { Leaving } from './rolling-window.js';

const DAY_MS = 24 * 60 * 60_000;
/** Calls within this span leave together, with the last of them, so that a day has at most 1,440 entries. */
const GRAIN_MS = 60_000;

/** Requests of the last 24 hours, whichever hours the server's own day may consist of. */
export class DayWindow {
  /** Reserved and sent requests, as of the last `advance`. */
  requests = 0;
  /** The part of these that is reserved and not sent. */
  unsent = 0;
  #grains: { readonly firstSentAtMs: number; lastSentAtMs: number; requests: number }[] = [];

  advance(nowMs: number): void {
    while (this.#grains[0] !== undefined && this.#grains[0].lastSentAtMs + DAY_MS <= nowMs) {
      this.requests -= this.#grains.shift()?.requests ?? 0;
    }
  }

  reserve(requests: number): void {
    this.requests += requests;
    this.unsent += requests;
  }

  /** Takes back requests that reached nobody. @param sentAtMs null if they were not sent */
  cancel(requests: number, sentAtMs: number | null): void {
    if (sentAtMs !== null) {
      const grain = this.#grains.find((each) => each.lastSentAtMs >= sentAtMs);
      if (grain === undefined) return;
      grain.requests -= requests;
    } else this.unsent -= requests;
    this.requests -= requests;
  }

  /** For requests that were reserved. `nowMs` must not be earlier than any earlier send. */
  send(requests: number, nowMs: number): void {
    this.unsent -= requests;
    const last = this.#grains.at(-1);
    if (last !== undefined && nowMs - last.firstSentAtMs < GRAIN_MS) {
      last.requests += requests;
      last.lastSentAtMs = nowMs;
    } else {
      this.#grains.push({ firstSentAtMs: nowMs, lastSentAtMs: nowMs, requests });
    }
  }

  *leaving(nowMs: number): Generator<Leaving> {
    for (const grain of this.#grains) {
      yield { atMs: grain.lastSentAtMs + DAY_MS, amount: grain.requests };
    }
    yield { atMs: nowMs + DAY_MS, amount: this.unsent };
  }
}
