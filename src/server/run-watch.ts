/** The runs of a store as they go, asked of it once for everybody who looks on. */
import { type Clock, WOKEN } from '../core/clock.js';
import type { RunRecord } from '../core/run.js';
import type { RunSummary } from '../core/run-summary.js';
import type { Store } from '../store/store.js';
import { runFacts } from './run-facts.js';

/** Of more runs a page tells nobody anything. */
const MOST_RUNS = 100;
const LOOK_EVERY_MS = 1_000;
/** A look at many runs of a busy store must not be what the store is busy with. */
const SHARE_OF_TIME = 10;
const TOLD_EVERY_MS = 15_000;
/** A rate is that of the looks within so long. */
const RATE_OVER_MS = 30_000;

interface Look {
  readonly atMs: number;
  readonly settled: number;
}

export class RunWatch {
  readonly #store: Pick<Store, 'listRuns' | 'summarizeRun'>;
  readonly #clock: Clock;
  readonly #listeners = new Set<(json: string) => void>();
  readonly #looks = new Map<number, Look[]>();
  #isWatching = false;
  #waiting: AbortController | null = null;
  #last: string | null = null;
  #lastToldMs = 0;

  constructor(store: Pick<Store, 'listRuns' | 'summarizeRun'>, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** JSON of the newest runs: `{runs, left_out}`. */
  async look(): Promise<string> {
    const all = await this.#store.listRuns();
    const newest = all.slice(0, MOST_RUNS);
    const runs: object[] = [];
    for (const run of newest) runs.push(this.#factsOf(run, await this.#store.summarizeRun(run.id)));
    for (const id of this.#looks.keys()) if (!newest.some((run) => run.id === id)) this.#looks.delete(id);
    return JSON.stringify({ runs, left_out: all.length - newest.length });
  }

  /** Told at once, at each change and now and then: proxies close a connection on which nothing moves. @returns stops listening */
  follow(listener: (json: string) => void): () => void {
    this.#listeners.add(listener);
    // One who comes while the look for those who have left is under way is told by it.
    if (!this.#isWatching) void this.#watch();
    else if (this.#last !== null) listener(this.#last);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#waiting?.abort(WOKEN);
    };
  }

  async #watch(): Promise<void> {
    this.#isWatching = true;
    this.#last = null;
    while (this.#listeners.size > 0) {
      const startedMs = this.#clock.monotonicMs();
      // A store that does not answer now is asked again.
      const json = await this.look().catch(() => null);
      const endedMs = this.#clock.monotonicMs();
      if (json !== null && (json !== this.#last || endedMs - this.#lastToldMs >= TOLD_EVERY_MS)) {
        this.#last = json;
        this.#lastToldMs = endedMs;
        for (const listener of this.#listeners) listener(json);
      }
      const tookMs = endedMs - startedMs;
      this.#waiting = new AbortController();
      await this.#clock.sleep(Math.max(LOOK_EVERY_MS, tookMs * SHARE_OF_TIME), this.#waiting.signal);
    }
    this.#isWatching = false;
  }

  #factsOf(run: RunRecord, summary: RunSummary): object {
    const { completed, failed } = summary.counts;
    return {
      ...runFacts(run, summary),
      failed_by_kind: summary.failedByKind,
      documents_per_minute: this.#rateOf(run.id, completed + failed),
    };
  }

  #rateOf(runId: number, settled: number): number {
    const nowMs = this.#clock.monotonicMs();
    const looks = (this.#looks.get(runId) ?? []).filter(({ atMs }) => nowMs - atMs <= RATE_OVER_MS);
    looks.push({ atMs: nowMs, settled });
    this.#looks.set(runId, looks);
    const [first] = looks;
    if (first === undefined || first.atMs === nowMs) return 0;
    return Math.max(0, Math.round(((settled - first.settled) * 60_000) / (nowMs - first.atMs)));
  }
}
