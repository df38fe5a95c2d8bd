/**
 * The simulator's books: what really arrived and what became of it, against which the client's own account
 * is checked. Memory: one record per document, one number pair per call of the last 60 seconds, one entry
 * per second with traffic.
 */
import { type Limits, MINUTE_MS } from './account.js';
import { type RemoteBooks, remoteBooks, snapshotOf } from './remote-books.js';
import { RollingWindow } from './rolling-window.js';

/** What the books know of one document. */
export interface DocumentRecord {
  calls: number;
  /** Calls that were let in. */
  accepted: number;
  /** Calls that met its directive or could have met a seeded fault. */
  met: number;
  /** Until when `retry-after` holds it back, on the monotonic clock. */
  heldUntilMs?: number;
  /** Before when it was told not to come again, on the monotonic clock. */
  notBeforeMs?: number;
}

/** The fullest 60 seconds of accepted calls. Shares are of the limit as it is now; null without one. */
export interface WindowPeak {
  readonly requests: number;
  readonly tokens: number;
  readonly requestsShare: number | null;
  readonly tokensShare: number | null;
}

export interface KeyBooks {
  /** See `keyHash`. */
  readonly keyHash: string;
  calls: number;
  accepted: number;
  tokensCharged: number;
  readonly peak: WindowPeak;
}

/** One second since the start of the server, on the monotonic clock. Seconds without a call are left out. */
export interface SecondBooks {
  readonly second: number;
  calls: number;
  accepted: number;
  refused: number;
  tokensCharged: number;
}

export interface SimulatorBooks {
  /** Calls whose request was read to its end; neither files and batches nor their lines are calls. */
  readonly calls: number;
  readonly documents: number;
  readonly callsByDocument: Readonly<Record<string, number>>;
  /** Times that documents came beyond their first. */
  readonly repeatedCalls: number;
  /** Let in and charged to the limits, whatever became of them then. */
  readonly accepted: number;
  /** Times that documents were in accepted calls or lines run beyond their first: what may have been paid twice. */
  readonly repeatedAccepted: number;
  /** Usable answers handed to the network in full. */
  readonly answered: number;
  /** Calls whose caller left before the reply was out. */
  readonly abandoned: number;
  /** Replies with a status other than 2xx, by that status. */
  readonly refusedByStatus: Readonly<Record<string, number>>;
  /** Calls that met a directive, seeded fault or outage, by its name. */
  readonly behaviours: Readonly<Record<string, number>>;
  readonly openCalls: number;
  readonly openCallsPeak: number;
  /** As charged at admission. */
  readonly tokensCharged: number;
  /** As told in the usage of the replies made, where they tell it. */
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly peak: WindowPeak;
  readonly keys: readonly Readonly<KeyBooks>[];
  readonly timeline: readonly Readonly<SecondBooks>[];
  /** Files and batches. */
  readonly remote: Readonly<RemoteBooks>;
  readonly violations: {
    /** Calls refused because a limit was full. */
    readonly overLimit: number;
    /** Calls of a document that came sooner than its last 429 allowed; documents alike in every word blur it. */
    readonly beforeRetryAfter: number;
    /** Requests that followed a redirect to another origin. */
    readonly followedRedirect: number;
  };
  /** Why the log file ends early, or why a call could not be judged; null when all is well. */
  readonly defect: string | null;
}

/** What one line costs. */
export interface Bill {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Null where the simulator has no prices. */
  readonly costUsd: number | null;
}

/** What shares are reckoned from. */
export type PeakLimits = Pick<Limits, 'rpm' | 'tpm'>;

/** Watches the fullest 60 seconds; it need only look when a call arrives, for then a window is fullest. */
class PeakWatch {
  readonly #window = new RollingWindow(MINUTE_MS);
  #requests = 0;
  #tokens = 0;

  add(nowMs: number, tokens: number): void {
    this.#window.add(nowMs, tokens);
    this.#requests = Math.max(this.#requests, this.#window.requests(nowMs));
    this.#tokens = Math.max(this.#tokens, this.#window.tokens(nowMs));
  }

  peak({ rpm, tpm }: PeakLimits): WindowPeak {
    return {
      requests: this.#requests,
      tokens: this.#tokens,
      requestsShare: rpm === null ? null : this.#requests / rpm,
      tokensShare: tpm === null ? null : this.#tokens / tpm,
    };
  }
}

interface KeyRecord extends Omit<KeyBooks, 'keyHash' | 'peak'> {
  readonly peak: PeakWatch;
}

export class Books {
  readonly #documents = new Map<string, DocumentRecord>();
  readonly #keys = new Map<string, KeyRecord>();
  readonly #timeline: SecondBooks[] = [];
  readonly #peak = new PeakWatch();
  readonly #startMs: number;
  readonly remote = remoteBooks();
  /** What is counted as it stands in a snapshot. */
  readonly #totals = {
    calls: 0,
    accepted: 0,
    repeatedAccepted: 0,
    answered: 0,
    abandoned: 0,
    openCalls: 0,
    openCallsPeak: 0,
    tokensCharged: 0,
    promptTokens: 0,
    completionTokens: 0,
    defect: null as string | null,
  };
  readonly #refusedByStatus: Record<string, number> = {};
  readonly #behaviours: Record<string, number> = {};
  readonly #violations = { overLimit: 0, beforeRetryAfter: 0, followedRedirect: 0 };

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  get openCalls(): number {
    return this.#totals.openCalls;
  }

  open(): void {
    this.#totals.openCalls += 1;
    this.#totals.openCallsPeak = Math.max(this.#totals.openCallsPeak, this.#totals.openCalls);
  }

  close(end: 'answered' | 'delivered' | 'abandoned'): void {
    this.#totals.openCalls -= 1;
    if (end !== 'delivered') this.#totals[end] += 1;
  }

  /** A call was read to its end. Returns its number, from 1. */
  arrive(nowMs: number, keyHash: string): number {
    this.#totals.calls += 1;
    this.#key(keyHash).calls += 1;
    this.#second(nowMs).calls += 1;
    return this.#totals.calls;
  }

  /** The call is this document's. */
  meet(fingerprint: string, nowMs: number): DocumentRecord {
    let record = this.#documents.get(fingerprint);
    if (record === undefined) {
      record = { calls: 0, accepted: 0, met: 0 };
      this.#documents.set(fingerprint, record);
    }
    record.calls += 1;
    if (record.notBeforeMs !== undefined) {
      if (nowMs < record.notBeforeMs) this.#violations.beforeRetryAfter += 1;
      else delete record.notBeforeMs;
    }
    return record;
  }

  /** @param documents of the call, at least one */
  accept(documents: readonly DocumentRecord[], keyHash: string, nowMs: number, tokens: number): void {
    this.#countAccepted(documents);
    const key = this.#key(keyHash);
    for (const record of [this.#totals, key, this.#second(nowMs)]) {
      record.accepted += 1;
      record.tokensCharged += tokens;
    }
    this.#peak.add(nowMs, tokens);
    key.peak.add(nowMs, tokens);
  }

  /** A batch's line was run; it is no call, and no limit of calls holds it. */
  acceptLine(documents: readonly DocumentRecord[], bill: Bill): void {
    this.#countAccepted(documents);
    this.remote.linesRun += 1;
    this.remote.promptTokens += bill.promptTokens;
    this.remote.completionTokens += bill.completionTokens;
    this.remote.costUsd += bill.costUsd ?? 0;
  }

  refuse(nowMs: number, status: number, overLimit: boolean): void {
    this.#refusedByStatus[status] = (this.#refusedByStatus[status] ?? 0) + 1;
    this.#second(nowMs).refused += 1;
    if (overLimit) this.#violations.overLimit += 1;
  }

  behave(name: string): void {
    this.#behaviours[name] = (this.#behaviours[name] ?? 0) + 1;
  }

  bill(promptTokens: number, completionTokens: number): void {
    this.#totals.promptTokens += promptTokens;
    this.#totals.completionTokens += completionTokens;
  }

  followRedirect(): void {
    this.#violations.followedRedirect += 1;
  }

  /** The first one is kept. */
  noteDefect(message: string): void {
    this.#totals.defect ??= message;
  }

  /** A snapshot; it does not change afterwards. */
  snapshot(limitsOf: (keyHash: string) => PeakLimits, together: PeakLimits): SimulatorBooks {
    const documents = [...this.#documents].map(([fingerprint, { calls }]) => [fingerprint, calls] as const);
    return {
      ...this.#totals,
      documents: documents.length,
      callsByDocument: Object.fromEntries(documents),
      repeatedCalls: documents.reduce((sum, [, calls]) => sum + calls - 1, 0),
      refusedByStatus: { ...this.#refusedByStatus },
      behaviours: { ...this.#behaviours },
      peak: this.#peak.peak(together),
      keys: [...this.#keys].map(([keyHash, { peak, ...counts }]) => ({
        keyHash,
        ...counts,
        peak: peak.peak(limitsOf(keyHash)),
      })),
      timeline: this.#timeline.map((second) => ({ ...second })),
      remote: snapshotOf(this.remote),
      violations: { ...this.#violations },
    };
  }

  #countAccepted(documents: readonly DocumentRecord[]): void {
    for (const document of documents) {
      if (document.accepted > 0) this.#totals.repeatedAccepted += 1;
      document.accepted += 1;
    }
  }

  #key(keyHash: string): KeyRecord {
    let record = this.#keys.get(keyHash);
    if (record === undefined) {
      record = { calls: 0, accepted: 0, tokensCharged: 0, peak: new PeakWatch() };
      this.#keys.set(keyHash, record);
    }
    return record;
  }

  #second(nowMs: number): SecondBooks {
    const second = Math.floor((nowMs - this.#startMs) / 1_000);
    const newest = this.#timeline.at(-1);
    if (newest !== undefined && newest.second === second) return newest;
    const record = { second, calls: 0, accepted: 0, refused: 0, tokensCharged: 0 };
    this.#timeline.push(record);
    return record;
  }
}
