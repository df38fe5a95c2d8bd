/**
 * A lane is one API key at one endpoint with its own limits. The gate below hands out permission to call, in
 * the order in which it was asked: the first in the queue takes the first lane that has room for it, so a
 * large task is never overtaken for ever by small ones.
 */
import type { Clock } from '../core/clock.js';
import type { BlockedBy, Cost, Grant, Limiter } from '../limiter/limiter.js';
import type { Provider } from '../provider/provider.js';
import type { RemoteResponses } from '../provider/remote-responses.js';
import { LaneHealth } from './lane-health.js';
import type { LaneQuota } from './lane-quota.js';
import type { LanePrices, RemoteLane } from './remote/remote-lane.js';

export interface Lane extends LanePrices {
  readonly name: string;
  /** Share of the calls while several lanes are free. */
  readonly weight: number;
  readonly provider: Provider;
  readonly limiter: Limiter;
  /** Where others send under the same limits; absent: the lane has them for itself. */
  readonly quota?: LaneQuota;
  /** Absent: it makes none in the background. */
  readonly responses?: RemoteResponses;
  /** Absent: it takes no batches. */
  readonly remote?: RemoteLane;
}

export interface BatchingLane extends Lane {
  readonly remote: RemoteLane;
}

export type Admission =
  | {
      readonly admitted: true;
      readonly lane: Lane;
      readonly grant: Grant;
      /** See `isRecalled`. */
      readonly recalls: number;
    }
  /** No lane could ever carry it: larger than every whole limit. */
  | { readonly admitted: false; readonly impossible: true; readonly reason: string }
  /** The gate was closed while it waited. */
  | { readonly admitted: false; readonly impossible: false };

export interface GateHold {
  /** `trial`: the first call to a server that is new to the store. */
  readonly blockedBy: BlockedBy | 'trial';
  /** Monotonic time at which the first in the queue is expected to go. */
  readonly untilMs: number;
}

/** A hold that is over. */
export interface GateWait {
  readonly blockedBy: GateHold['blockedBy'];
  readonly waitMs: number;
}

interface Waiter {
  readonly cost: Cost;
  readonly resolve: (admission: Admission) => void;
}

export class Gate {
  #lanes: readonly Lane[];
  readonly #admitted = new Map<Lane, number>();
  readonly #health: ReadonlyMap<Lane, LaneHealth>;
  readonly #recalls = new Map<Lane, number>();
  readonly #clock: Clock;
  readonly #onWaited: (waited: GateWait) => void;
  readonly #waiters: Waiter[] = [];
  #closed = false;
  #hold: GateHold | null = null;
  #heldSinceMs = 0;
  #cancelAlarm: () => void = () => undefined;

  /** @param areUntried no call like these was ever answered: one goes first on each lane */
  constructor(
    lanes: readonly Lane[],
    clock: Clock,
    areUntried: boolean,
    onWaited: (waited: GateWait) => void = () => undefined,
  ) {
    this.#lanes = lanes;
    this.#clock = clock;
    this.#onWaited = onWaited;
    this.#health = new Map(lanes.map((lane) => [lane, new LaneHealth(areUntried)]));
    for (const { quota } of lanes) quota?.subscribe(() => this.poke());
  }

  /** What the calls of a lane say of its server. */
  healthOf(lane: Lane): LaneHealth {
    const health = this.#health.get(lane);
    if (health === undefined) throw new TypeError(`${lane.name} is no lane of this gate.`);
    return health;
  }

  /** Lanes whose server does not answer, and since when (monotonic). */
  get down(): readonly { readonly lane: Lane; readonly sinceMs: number }[] {
    return this.#lanes.flatMap((lane) => {
      const sinceMs = this.healthOf(lane).downSinceMs;
      return sinceMs === null ? [] : [{ lane, sinceMs }];
    });
  }

  get waiting(): number {
    return this.#waiters.length;
  }

  /** What the first in the queue waits for; null when nobody waits. */
  get hold(): GateHold | null {
    return this.#hold;
  }

  admit(cost: Cost): Promise<Admission> {
    return new Promise((resolve) => {
      this.#waiters.push({ cost, resolve });
      if (this.#waiters.length === 1) this.poke();
    });
  }

  /** Looks again at the queue: something gave room back, or a wait is over. */
  poke(): void {
    this.#cancelAlarm();
    this.#endHold();
    for (;;) {
      const waiter = this.#waiters[0];
      if (waiter === undefined) return;
      const admission = this.#closed
        ? { admitted: false as const, impossible: false as const }
        : this.#try(waiter.cost);
      if (admission === null) return;
      this.#waiters.shift();
      waiter.resolve(admission);
    }
  }

  /** The lane is silent from now on: what it has admitted and what is not on its way yet has to ask again. */
  recall(lane: Lane): void {
    this.#recalls.set(lane, this.#recallsOf(lane) + 1);
  }

  /** Whether what was admitted may leave no more: its lane was recalled or set aside since then, or the gate closed. */
  isRecalled({ lane, recalls }: { readonly lane: Lane; readonly recalls: number }): boolean {
    return this.#closed || recalls !== this.#recallsOf(lane) || !this.#lanes.includes(lane);
  }

  #recallsOf(lane: Lane): number {
    return this.#recalls.get(lane) ?? 0;
  }

  /** Takes a lane out of service, because its key or its account fails. @returns how many are left */
  setAside(lane: Lane): number {
    this.#lanes = this.#lanes.filter((other) => other !== lane);
    this.poke();
    return this.#lanes.length;
  }

  /** Nobody is admitted any more; those who wait are sent back. */
  close(): void {
    this.#closed = true;
    this.poke();
  }

  #endHold(): void {
    if (this.#hold === null) return;
    const waitMs = this.#clock.monotonicMs() - this.#heldSinceMs;
    if (waitMs > 0) this.#onWaited({ blockedBy: this.#hold.blockedBy, waitMs });
    this.#hold = null;
  }

  #try(cost: Cost): Admission | null {
    // Without a lane the drain is about to stop; nothing is said of the task.
    if (this.#lanes.length === 0) return { admitted: false, impossible: false };
    const nowMs = this.#clock.monotonicMs();
    let shortest: { waitMs: number; blockedBy: GateHold['blockedBy'] } | null = null;
    let reason = '';
    for (const lane of this.#byShare()) {
      const health = this.healthOf(lane);
      const trialMs = health.trialForMs(nowMs);
      if (trialMs > 0) {
        if (shortest === null || trialMs < shortest.waitMs)
          shortest = { waitMs: trialMs, blockedBy: 'trial' };
        continue;
      }
      const reservation = lane.limiter.reserve(cost, nowMs);
      if (reservation.granted) {
        health.admitted(nowMs);
        this.#admitted.set(lane, this.#shareOf(lane) * lane.weight + 1);
        return { admitted: true, lane, grant: reservation.grant, recalls: this.#recallsOf(lane) };
      }
      if (!reservation.impossible && reservation.wants !== undefined) lane.quota?.want(reservation.wants);
      if (reservation.impossible) reason = reservation.reason;
      else if (shortest === null || reservation.waitMs < shortest.waitMs) shortest = reservation;
    }
    if (shortest === null) return { admitted: false, impossible: true, reason };
    this.#wakeAfter(shortest.waitMs, shortest.blockedBy, nowMs);
    return null;
  }

  /** The lane that has had the least of its share comes first. */
  #byShare(): readonly Lane[] {
    if (this.#lanes.length < 2) return this.#lanes;
    return [...this.#lanes].sort((one, other) => this.#shareOf(one) - this.#shareOf(other));
  }

  #shareOf(lane: Lane): number {
    return (this.#admitted.get(lane) ?? 0) / lane.weight;
  }

  #wakeAfter(waitMs: number, blockedBy: GateHold['blockedBy'], nowMs: number): void {
    this.#hold = { blockedBy, untilMs: nowMs + waitMs };
    this.#heldSinceMs = nowMs;
    this.#cancelAlarm = this.#clock.after(waitMs, () => this.poke());
  }
}
