/** What is seen of a run's servers while it is drained: kept with the run for those that look at it, and never asked of it. */
import type { Clock } from '../core/clock.js';
import type { RunEvent, TellEvent } from '../core/event.js';
import { addGroups, type GroupFigures, NO_GROUPS } from '../core/group-figures.js';
import type { JsonObject } from '../core/json.js';
import type { LearntLimits } from '../core/limits.js';
import type { RunObservation, RunRecord } from '../core/run.js';
import { amount, objectOf, orNull, type Shape, text } from '../core/shape.js';
import type { DrainNotice } from '../engine/drain.js';
import type { Lane } from '../engine/lane.js';
import type { PriceTable } from '../pricing/price-book.js';
import type { Store } from '../store/store.js';

/** What a lane's server has said of its limits. */
export interface LearntLimit extends LearntLimits {
  readonly lane: string;
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
  /** Null where no call had several documents. */
  readonly groups: GroupFigures | null;
  /** In whose trace it was handed in (W3C Trace Context); null where nobody traced that. */
  readonly traceparent: string | null;
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
  submission: objectOf({ traceparent: text }),
  groups: objectOf({ calls: amount, documents: amount, fewest: amount, most: amount, splits: amount }),
};

/** The inverse of what `noteObservations` and the functions below give the store. */
export function observationsOf(run: RunRecord): RunObservations {
  const ofKind = <Seen>(kind: RunObservation['kind']): Seen[] =>
    run.observations
      .filter((seen) => seen.kind === kind && SHAPES[kind](seen.value) === null)
      .map(({ subject, value }) => ({ ...(subject === '' ? {} : { lane: subject }), ...value }) as Seen);
  return {
    learntLimits: ofKind<LearntLimit>('learnt_limit'),
    outages: ofKind<Outage>('outage'),
    prices: ofKind<PriceTable>('prices')[0] ?? null,
    groups: ofKind<GroupFigures>('groups')[0] ?? null,
    traceparent: ofKind<{ traceparent: string }>('submission')[0]?.traceparent ?? null,
  };
}

export function submissionObserved(traceparent: string): RunObservation {
  return { kind: 'submission', subject: '', value: { traceparent } };
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
  readonly #groupsBefore: GroupFigures;

  constructor(store: Store, run: RunRecord, lanes: readonly Lane[], clock: Clock, tell: TellEvent) {
    this.#tell = tell;
    this.#store = store;
    this.#run = run;
    this.#lanes = lanes;
    this.#clock = clock;
    this.#groupsBefore = observationsOf(run).groups ?? NO_GROUPS;
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
  begin(groups: () => GroupFigures): () => Promise<void> {
    const ended = new AbortController();
    const noting = (async () => {
      while (!ended.signal.aborted) {
        await this.#clock.sleep(NOTE_EVERY_MS, ended.signal);
        await this.#note(groups());
      }
      // A store that cannot be written ends the drain itself; what was seen is the least of the losses then.
    })().catch(() => undefined);
    return () => {
      ended.abort();
      return noting;
    };
  }

  async #note(groups: GroupFigures): Promise<void> {
    const together = addGroups(this.#groupsBefore, groups);
    const seen = this.#lanes.flatMap(({ name, limiter }): Seen[] => {
      const outage: Seen = {
        observation: { kind: 'outage', subject: name, value: this.#outages.get(name) ?? null },
        event: null,
      };
      const { learnt } = limiter.snapshot(this.#clock.monotonicMs());
      if ((learnt.requestsPerMinute ?? learnt.tokensPerMinute ?? learnt.requestsPerDay) === null)
        return [outage];
      const learntLimit: Seen = {
        observation: { kind: 'learnt_limit', subject: name, value: { ...learnt } },
        event: { type: 'limit_learnt', lane: name, ...learnt },
      };
      return [outage, learntLimit];
    });
    if (together.calls > 0) {
      seen.push({ observation: { kind: 'groups', subject: '', value: { ...together } }, event: null });
    }
    const changed = seen.filter(
      ({ observation }) =>
        (this.#noted.get(nameOf(observation)) ?? 'null') !== JSON.stringify(observation.value),
    );
    if (changed.length === 0) return;
    for (const { event } of changed) if (event !== null) this.#tell(event);
    const observations = changed.map(({ observation }) => observation);
    await this.#store.noteObservations(this.#run.id, observations);
    for (const one of observations) this.#noted.set(nameOf(one), JSON.stringify(one.value));
  }
}

interface Seen {
  readonly observation: RunObservation;
  /** What is told of it; null: others have. */
  readonly event: RunEvent | null;
}

function nameOf({ kind, subject }: RunObservation): string {
  return `${kind} ${subject}`;
}
