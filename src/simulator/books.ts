/**
 * The simulator's books: what really arrived and what became of it, against which the client's own account
 * is checked. Memory: one record per document, one number pair per call of the last 60 seconds, one entry
 * per second with traffic.
 */
import { MINUTE_MS } from './account.js';
import { type RemoteBooks, RemoteLedger } from './remote-books.js';
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
  readonly calls: number;
  readonly accepted: number;
  readonly tokensCharged: number;
  readonly peak: WindowPeak;
}

/** One second since the start of the server, on the monotonic clock. Seconds without a call are left out. */
export interface SecondBooks {
  readonly second: number;
  readonly calls: number;
  readonly accepted: number;
  readonly refused: number;
  readonly tokensCharged: number;
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
  readonly keys: readonly KeyBooks[];
  readonly timeline: readonly SecondBooks[];
  /** Files and batches. */
  readonly remote: RemoteBooks;
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
export interface PeakLimits {
  readonly rpm: number | null;
  readonly tpm: number | null;
}

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

interface KeyRecord {
  calls: number;
  accepted: number;
  tokensCharged: number;
  readonly peak: PeakWatch;
}

interface SecondRecord {
  second: number;
  calls: number;
  accepted: number;
  refused: number;
  tokensCharged: number;
}

export class Books {
  readonly #documents = new Map<string, DocumentRecord>();
  readonly #keys = new Map<string, KeyRecord>();
  readonly #refusedByStatus = new Map<number, number>();
  readonly #behaviours = new Map<string, number>();
  readonly #timeline: SecondRecord[] = [];
  readonly #peak = new PeakWatch();
  readonly remote = new RemoteLedger();
  readonly #startMs: number;
  #calls = 0;
  #accepted = 0;
  #repeatedAccepted = 0;
  #answered = 0;
  #abandoned = 0;
  #openCalls = 0;
  #openCallsPeak = 0;
  #tokensCharged = 0;
  #promptTokens = 0;
  #completionTokens = 0;
  #overLimit = 0;
  #beforeRetryAfter = 0;
  #followedRedirect = 0;
  #defect: string | null = null;

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  get openCalls(): number {
    return this.#openCalls;
  }

  open(): void {
    this.#openCalls += 1;
    this.#openCallsPeak = Math.max(this.#openCallsPeak, this.#openCalls);
  }

  close(end: 'answered' | 'delivered' | 'abandoned'): void {
    this.#openCalls -= 1;
    if (end === 'answered') this.#answered += 1;
    if (end === 'abandoned') this.#abandoned += 1;
  }

  /** A call was read to its end. Returns its number, from 1. */
  arrive(nowMs: number, keyHash: string): number {
    this.#calls += 1;
    this.#key(keyHash).calls += 1;
    this.#second(nowMs).calls += 1;
    return this.#calls;
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
      if (nowMs < record.notBeforeMs) this.#beforeRetryAfter += 1;
      else delete record.notBeforeMs;
    }
    return record;
  }

  /** @param documents of the call, at least one */
  accept(documents: readonly DocumentRecord[], keyHash: string, nowMs: number, tokens: number): void {
    this.#accepted += 1;
    this.#countAccepted(documents);
    this.#tokensCharged += tokens;
    this.#peak.add(nowMs, tokens);
    const key = this.#key(keyHash);
    key.accepted += 1;
    key.tokensCharged += tokens;
    key.peak.add(nowMs, tokens);
    const second = this.#second(nowMs);
    second.accepted += 1;
    second.tokensCharged += tokens;
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
    this.#refusedByStatus.set(status, (this.#refusedByStatus.get(status) ?? 0) + 1);
    this.#second(nowMs).refused += 1;
    if (overLimit) this.#overLimit += 1;
  }

  behave(name: string): void {
    this.#behaviours.set(name, (this.#behaviours.get(name) ?? 0) + 1);
  }

  bill(promptTokens: number, completionTokens: number): void {
    this.#promptTokens += promptTokens;
    this.#completionTokens += completionTokens;
  }

  followRedirect(): void {
    this.#followedRedirect += 1;
  }

  /** The first one is kept. */
  noteDefect(message: string): void {
    this.#defect ??= message;
  }

  /** A snapshot; it does not change afterwards. */
  snapshot(limitsOf: (keyHash: string) => PeakLimits, together: PeakLimits): SimulatorBooks {
    const keys = [...this.#keys].map(([keyHash, { calls, accepted, tokensCharged, peak }]) => ({
      keyHash,
      calls,
      accepted,
      tokensCharged,
      peak: peak.peak(limitsOf(keyHash)),
    }));
    const documents = this.#documents.size;
    let documentCalls = 0;
    const callsByDocument: Record<string, number> = {};
    for (const [fingerprint, { calls }] of this.#documents) {
      callsByDocument[fingerprint] = calls;
      documentCalls += calls;
    }
    return {
      calls: this.#calls,
      documents,
      callsByDocument,
      repeatedCalls: documentCalls - documents,
      accepted: this.#accepted,
      repeatedAccepted: this.#repeatedAccepted,
      answered: this.#answered,
      abandoned: this.#abandoned,
      refusedByStatus: Object.fromEntries(this.#refusedByStatus),
      behaviours: Object.fromEntries(this.#behaviours),
      openCalls: this.#openCalls,
      openCallsPeak: this.#openCallsPeak,
      tokensCharged: this.#tokensCharged,
      promptTokens: this.#promptTokens,
      completionTokens: this.#completionTokens,
      peak: this.#peak.peak(together),
      keys,
      timeline: this.#timeline.map((second) => ({ ...second })),
      remote: this.remote.snapshot(),
      violations: {
        overLimit: this.#overLimit,
        beforeRetryAfter: this.#beforeRetryAfter,
        followedRedirect: this.#followedRedirect,
      },
      defect: this.#defect,
    };
  }

  #countAccepted(documents: readonly DocumentRecord[]): void {
    for (const document of documents) {
      if (document.accepted > 0) this.#repeatedAccepted += 1;
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

  #second(nowMs: number): SecondRecord {
    const second = Math.floor((nowMs - this.#startMs) / 1_000);
    const newest = this.#timeline.at(-1);
    if (newest !== undefined && newest.second === second) return newest;
    const record = { second, calls: 0, accepted: 0, refused: 0, tokensCharged: 0 };
    this.#timeline.push(record);
    return record;
  }
}
