/**
 * The one record of a lane's recent calls, of a size that does not grow with their number: how fast the server let
 * us go, by the second; what became of the last few; and, for the question that the throttle asks at the moment, how
 * many were let in and refused since it asked (an epoch).
 *
 * A call is let in when it is answered, or when it is open for longer than refusals take: answers take seconds or
 * minutes, refusals mostly milliseconds, and to wait for the answers would count nothing but refusals at first. One
 * that is refused after all is put right at its own place.
 */
export class RecentCalls {
  readonly #seconds: Second[] = Array.from({ length: KEPT_SECONDS }, () =>
    emptySecond(Number.NEGATIVE_INFINITY),
  );
  /** What was decided last, newest last. */
  #decided: Call[] = [];
  /** Open and not old enough to count as let in; in the order they were sent. */
  readonly #undecided = new Set<Call>();
  readonly #open = new Set<Call>();
  /** Open calls that count as let in. */
  #openLetIn = 0;
  #refusalMs: number | null = null;
  #firstSentAtMs: number | null = null;

  get openCalls(): number {
    return this.#open.size;
  }

  /** How long refusals took of late; 0 before the first. */
  get refusalMs(): number {
    return this.#refusalMs ?? 0;
  }

  granted(work: number, nowMs: number): Call {
    const call: Call = {
      work,
      grantedAtMs: nowMs,
      sentAtMs: null,
      epoch: null,
      fate: 'open',
      decidedAtMs: 0,
      holdsUntilMs: 0,
    };
    this.#open.add(call);
    return call;
  }

  sent(call: Call, epoch: Epoch | null, nowMs: number): void {
    this.#firstSentAtMs ??= nowMs;
    call.sentAtMs = nowMs;
    call.epoch = epoch;
    this.#undecided.add(call);
    const second = this.#secondOf(call);
    if (second === null) return;
    second.letInWork += call.work;
    second.sentWork += call.work;
    second.sent += 1;
  }

  /** The call is over; whether it was refused is told next, if it was. */
  ended(call: Call, lessWork: number, nowMs: number): void {
    this.#close(call);
    if (call.sentAtMs === null) return;
    const second = this.#secondOf(call);
    if (second !== null) second.letInWork -= lessWork;
    call.work -= lessWork;
    this.#letIn(call, nowMs);
  }

  /** It reached nobody, so it says nothing. */
  forget(call: Call): void {
    if (call.fate === 'forgotten') return;
    this.#close(call);
    this.#undecided.delete(call);
    this.#decided = this.#decided.filter((decided) => decided !== call);
    if (call.fate === 'let in' && call.epoch !== null) call.epoch.letIn -= 1;
    if (call.fate !== 'refused') this.#notLetIn(call);
    call.fate = 'forgotten';
  }

  /** @param holdsUntilMs until when the server wants silence; 0: it did not say */
  refused(call: Call, holdsUntilMs: number, nowMs: number): void {
    call.holdsUntilMs = holdsUntilMs;
    if (call.fate === 'refused' || call.fate === 'forgotten') return;
    if (call.sentAtMs !== null) {
      this.#notLetIn(call);
      this.#refusalMs = Math.max(nowMs - call.sentAtMs, (this.#refusalMs ?? 0) * REFUSAL_FADES);
    }
    if (call.epoch !== null) {
      if (call.fate === 'let in') call.epoch.letIn -= 1;
      call.epoch.refused += 1;
      call.epoch.openWhenRefused += this.#openLetIn;
    }
    if (!this.#decided.includes(call)) this.#decide(call, nowMs);
    this.#close(call);
    call.fate = 'refused';
    this.#undecided.delete(call);
  }

  /** Counts as let in what is open for longer than refusals take. */
  advance(nowMs: number): void {
    if (this.#refusalMs === null) return;
    for (const call of this.#undecided) {
      if (nowMs - (call.sentAtMs ?? nowMs) <= REFUSALS_WAITED * this.#refusalMs) return;
      this.#letIn(call, nowMs);
      this.#openLetIn += 1;
      if (call.epoch === null) continue;
      call.epoch.mostOpen = Math.max(call.epoch.mostOpen, this.#openLetIn);
    }
  }

  /**
   * Whether half of the last calls or more were refused.
   * @param isTold the server named a wait, which is its first word where nothing was let in: then one is enough
   */
  areMostlyRefused(isTold: boolean, nowMs: number): boolean {
    const late = this.#decided.filter((call) => nowMs - call.decidedAtMs < REMEMBERED_MS);
    const refused = late.filter((call) => call.fate === 'refused').length;
    if (refused < late.length ? refused < 2 : isTold) return refused === late.length;
    return 2 * refused >= Math.min(LAST_CALLS, late.length + this.#undecided.size);
  }

  /** The latest end of silence that one of the last refusals named; 0 when none did. */
  get namedEndMs(): number {
    return this.#decided.reduce((latest, call) => Math.max(latest, call.holdsUntilMs), 0);
  }

  /** What came before a pause says nothing of what comes after it. */
  forgetLast(): void {
    this.#decided = [];
  }

  /** Work let in per millisecond over the last `spanMs`; `busy`: of the seconds in which calls were sent alone. */
  letInPerMs(spanMs: number, over: 'all' | 'busy', nowMs: number): number {
    const fromMs = Math.max(nowMs - spanMs, this.#firstSentAtMs ?? nowMs);
    let work = 0;
    let lengthMs = 0;
    for (const { second, letInWork } of this.#seconds) {
      const startMs = Math.max(second * SECOND_MS, fromMs);
      const endMs = Math.min((second + 1) * SECOND_MS, nowMs);
      if (endMs <= startMs) continue;
      work += letInWork;
      lengthMs += endMs - startMs;
    }
    return work / Math.max(SECOND_MS, over === 'busy' ? lengthMs : nowMs - fromMs);
  }

  /** Mean work of a call of the last minute. */
  get workPerCall(): number {
    let work = 0;
    let calls = 0;
    for (const second of this.#seconds) {
      work += second.sentWork;
      calls += second.sent;
    }
    return calls === 0 ? 1 : work / calls;
  }

  #close(call: Call): void {
    if (this.#open.delete(call) && call.fate === 'let in') this.#openLetIn -= 1;
  }

  #letIn(call: Call, nowMs: number): void {
    this.#undecided.delete(call);
    if (call.fate !== 'open') return;
    call.fate = 'let in';
    if (call.epoch !== null) call.epoch.letIn += 1;
    this.#decide(call, nowMs);
  }

  #notLetIn(call: Call): void {
    const second = call.sentAtMs === null ? null : this.#secondOf(call);
    if (second !== null) second.letInWork -= call.work;
  }

  #decide(call: Call, nowMs: number): void {
    call.decidedAtMs = nowMs;
    this.#decided.push(call);
    if (this.#decided.length > LAST_CALLS) this.#decided.shift();
  }

  /** Null: the call was sent too long ago. */
  #secondOf(call: Call): Second | null {
    const second = Math.floor((call.sentAtMs ?? 0) / SECOND_MS);
    const index = ((second % KEPT_SECONDS) + KEPT_SECONDS) % KEPT_SECONDS;
    let slot = this.#seconds[index];
    if (slot === undefined || slot.second < second) this.#seconds[index] = slot = emptySecond(second);
    return slot.second === second ? slot : null;
  }
}

/** One call as it is followed here. `work` is how much of the lane's time it takes at full speed. */
export interface Call {
  work: number;
  readonly grantedAtMs: number;
  sentAtMs: number | null;
  epoch: Epoch | null;
  fate: 'open' | 'let in' | 'refused' | 'forgotten';
  decidedAtMs: number;
  holdsUntilMs: number;
}

/** Calls sent while nothing was changed. */
export interface Epoch {
  readonly startedAtMs: number;
  letIn: number;
  refused: number;
  /** Of those let in, so many were open at once. */
  mostOpen: number;
  /** Summed over the refused: how many of those let in were open. */
  openWhenRefused: number;
}

interface Second {
  readonly second: number;
  sent: number;
  sentWork: number;
  letInWork: number;
}

function emptySecond(second: number): Second {
  return { second, sent: 0, sentWork: 0, letInWork: 0 };
}

const SECOND_MS = 1_000;
/** A minute, the longest window that per-minute limits are made of, and the second that has just begun. */
const KEPT_SECONDS = 61;
/** Few enough that a storm is seen at once, enough that one in ten refused at random makes no storm in a day. */
const LAST_CALLS = 16;
const REMEMBERED_MS = 10_000;
/** How long refusals take is the longest of late: each one counts a tenth less than the one after it. */
const REFUSAL_FADES = 0.9;
/** Some take longer than the last ones did. */
const REFUSALS_WAITED = 2;
