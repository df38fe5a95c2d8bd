/** What is seen of a run's servers while it is drained: kept with the run for those that look at it, and never asked of it. */
import type { Clock } from '../core/clock.js';
import type { TellEvent } from '../core/event.js';
import type { JsonObject } from '../core/json.js';
import type { RunObservation, RunRecord } from '../core/run.js';
import { amount, objectOf, orNull, type Shape, text } from '../core/shape.js';
import type { DrainNotice } from '../engine/drain.js';
import type { Lane } from '../engine/lane.js';
import type { PriceTable } from '../pricing/price-book.js';
import type { Store } from '../store/store.js';

/** What a lane's server has said of its limits; null where it said nothing. */
export interface LearntLimit {
  readonly lane: string;
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  readonly requestsPerDay: number | null;
}

/** A lane whose server did not answer when this was noted. */
export interface Outage {
  readonly lane: string;
  /** Wall time. */
  readonly sinceMs: number;
  /** What the last call met. */
  readonly message: string;
}

export interface RunObservations {
  readonly learntLimits: readonly LearntLimit[];
  readonly outages: readonly Outage[];
  /** What the calls were priced by; null before the first drain, or where an earlier version drained it. */
  readonly prices: PriceTable | null;
}

/** A store may have come from anybody; what is odd in it counts as not seen. */
const SHAPES: Readonly<Record<RunObservation['kind'], Shape>> = {
  learnt_limit: objectOf({
    requestsPerMinute: orNull(amount),
    tokensPerMinute: orNull(amount),
    requestsPerDay: orNull(amount),
  }),
  outage: objectOf({ sinceMs: amount, message: text }),
  prices: objectOf({ source: text, date: orNull(text) }),
};

/** The inverse of what `noteObservations` and `pricesObserved` give the store. */
export function observationsOf(run: RunRecord): RunObservations {
  const ofKind = <Seen>(kind: RunObservation['kind']): Seen[] =>
    run.observations
      .filter((seen) => seen.kind === kind && SHAPES[kind](seen.value) === null)
      .map(({ subject, value }) => ({ ...(kind === 'prices' ? {} : { lane: subject }), ...value }) as Seen);
  return {
    learntLimits: ofKind<LearntLimit>('learnt_limit'),
    outages: ofKind<Outage>('outage'),
    prices: ofKind<PriceTable>('prices')[0] ?? null,
  };
}

export function pricesObserved({ source, date }: PriceTable): RunObservation {
  return { kind: 'prices', subject: '', value: { source, date } };
}

const NOTE_EVERY_MS = 5_000;

/** Notes what is seen of a run's lanes while they are used. */
export class ObservationNotes {
  readonly #outages = new Map<string, JsonObject>();
  /** As the store has it, by kind and lane. */
  readonly #noted: Map<string, string>;
  readonly #store: Store;
  readonly #run: RunRecord;
  readonly #lanes: readonly Lane[];
  readonly #clock: Clock;
  readonly #tell: TellEvent;

  constructor(store: Store, run: RunRecord, lanes: readonly Lane[], clock: Clock, tell: TellEvent) {
    this.#tell = tell;
    this.#store = store;
    this.#run = run;
    this.#lanes = lanes;
    this.#clock = clock;
    this.#noted = new Map(run.observations.map((seen) => [nameOf(seen), JSON.stringify(seen.value)]));
  }

  follow(notice: DrainNotice): void {
    if (notice.type === 'lane_down') {
      const { lane, failure } = notice;
      this.#outages.set(lane, { sinceMs: this.#clock.now(), message: failure.message });
    } else if (notice.type === 'lane_up' || notice.type === 'lane_set_aside') {
      this.#outages.delete(notice.lane);
    }
  }

  /** Notes every few seconds what has changed. @returns notes a last time and ends */
  begin(): () => Promise<void> {
    const ended = new AbortController();
    const noting = (async () => {
      while (!ended.signal.aborted) {
        await this.#clock.sleep(NOTE_EVERY_MS, ended.signal);
        await this.#note();
      }
      // A store that cannot be written ends the drain itself; what was seen is the least of the losses then.
    })().catch(() => undefined);
    return () => {
      ended.abort();
      return noting;
    };
  }

  async #note(): Promise<void> {
    const seen = this.#lanes.flatMap(({ name, limiter }): RunObservation[] => {
      const { learnt } = limiter.snapshot(this.#clock.monotonicMs());
      const isAny = (learnt.requestsPerMinute ?? learnt.tokensPerMinute ?? learnt.requestsPerDay) !== null;
      return [
        { kind: 'outage', subject: name, value: this.#outages.get(name) ?? null },
        ...(isAny ? [{ kind: 'learnt_limit', subject: name, value: { ...learnt } } as const] : []),
      ];
    });
    const changed = seen.filter(
      (one) => (this.#noted.get(nameOf(one)) ?? 'null') !== JSON.stringify(one.value),
    );
    if (changed.length === 0) return;
    for (const { name, limiter } of this.#lanes) {
      if (!changed.some(({ kind, subject }) => kind === 'learnt_limit' && subject === name)) continue;
      const { learnt } = limiter.snapshot(this.#clock.monotonicMs());
      this.#tell({ type: 'limit_learnt', lane: name, ...learnt });
    }
    await this.#store.noteObservations(this.#run.id, changed);
    for (const one of changed) this.#noted.set(nameOf(one), JSON.stringify(one.value));
  }
}

function nameOf({ kind, subject }: RunObservation): string {
  return `${kind} ${subject}`;
}
