/**
 * Judges calls. In this order, as real servers do: is the key good; can the request be read; does the model
 * exist; is the server up and the account solvent; what is this document scripted to meet; do the limits hold
 * it. Only what passes all of it is charged, at one moment: that at which the request was read to its end.
 */
import type { Clock } from '../core/clock.js';
import { type JsonObject, parseJsonObject } from '../core/json.js';
import type { LimitHit, RuleName } from './account.js';
import type { Plan } from './behaviour.js';
import type { Bill, Books, DocumentRecord, SimulatorBooks } from './books.js';
import type { CallLog } from './call-log.js';
import { type Customer, Customers } from './customers.js';
import { errorBody, type Headers, rateLimitHeaders, requestIdHeader } from './dialect.js';
import type { BehaviourName } from './directive.js';
import type { Endpoint, Inquiry } from './endpoint.js';
import { fateOf } from './fate.js';
import {
  changeOptions,
  resolveOptions,
  type SimulatorChanges,
  type SimulatorOptions,
  type SimulatorSettings,
} from './options.js';
import {
  isRefusal,
  notAnObject,
  type Refusal,
  refusal,
  requestTooLarge,
  tellWait,
  throttled,
} from './refusal.js';
import { isFromProxy, type Reply, sendJson, statusOf } from './reply.js';
import { seededNumber } from './seeded.js';

/** A call as it came in. */
export interface Call {
  readonly endpoint: Endpoint;
  readonly bodyText: string;
  /** The bearer key; null without one. */
  readonly key: string | null;
  /** Where the server listens. */
  readonly port: number;
}

/** What becomes of it. */
export interface Verdict {
  readonly reply: Reply;
  readonly headers: Headers;
  readonly delayMs: number;
  /** True when the reply is a usable answer. */
  readonly answers: boolean;
  /** Of a call whose answer is not waited for. */
  readonly background?: BackgroundOrder;
}

/** What a call asks for that is to be answered later. */
export interface BackgroundOrder {
  /** Fingerprint. */
  readonly document: string;
  /** Null where the answer tells no usage. */
  readonly bill: Bill | null;
}

/** One line of a batch. */
export interface LineCall extends Omit<Call, 'bodyText'> {
  readonly requestBody: JsonObject;
}

/** What becomes of a line. */
export type LineVerdict =
  | {
      readonly isRun: true;
      readonly status: number;
      /** As it stands in the batch's file: JSON text. */
      readonly bodyJson: string;
      readonly behaviour: BehaviourName | null;
    }
  /** Its batch expired before. */
  | { readonly isRun: false };

/** What is found of a call, or of a line, while it is judged. */
interface Finding {
  readonly callNumber: number;
  readonly customer: Customer;
  readonly port: number;
  readonly nowMs: number;
  inquiry: Inquiry | null;
  document: DocumentRecord | null;
  /** Of the same call. */
  companions: readonly DocumentRecord[];
  behaviour: BehaviourName | null;
  tokensCharged: number;
  overLimit: boolean;
}

export class Judge {
  readonly #books: Books;
  readonly #log: CallLog | null;
  readonly #clock: Clock;
  readonly #customers: Customers;
  #options: SimulatorOptions;
  #settings: SimulatorSettings;
  #outageSetMs: number;

  constructor(
    options: SimulatorOptions,
    dependencies: { readonly books: Books; readonly log: CallLog | null; readonly clock: Clock },
  ) {
    this.#options = options;
    this.#settings = resolveOptions(options);
    this.#books = dependencies.books;
    this.#log = dependencies.log;
    this.#clock = dependencies.clock;
    this.#customers = new Customers(this.#settings);
    this.#outageSetMs = this.#clock.monotonicMs();
  }

  get settings(): SimulatorSettings {
    return this.#settings;
  }

  /** @throws LlmBatchError `SIMULATOR_OPTION`; nothing has changed then */
  reconfigure(changes: SimulatorChanges): void {
    const options = changeOptions(this.#options, changes);
    this.#settings = resolveOptions(options);
    this.#options = options;
    this.#customers.configure(this.#settings);
    if (Object.hasOwn(changes, 'outage')) this.#outageSetMs = this.#clock.monotonicMs();
  }

  /** Ends every fault: outage, errors, empty accounts, revoked keys, and what documents ask for. */
  heal(): void {
    this.reconfigure({
      outage: null,
      errorRate: null,
      revokedKeys: null,
      insufficientQuotaAfter: null,
      routeFaults: null,
      batches: this.#options.batches ? { ...this.#options.batches, queueTokens: null, faults: null } : null,
      keys: this.#settings.keys?.map((key) => ({ ...key, insufficientQuotaAfter: null })) ?? null,
      directives: false,
    });
  }

  /** The refusal that a key meets; null when it is good. */
  refusalOfKey(key: string | null): Refusal | null {
    return this.#customers.refusalOf(key);
  }

  /** A refusal of something that is no call and is not booked. */
  turnAway(refusal: Refusal): Verdict {
    const reply = sendJson(refusal.status, errorBody(this.#settings.headers, refusal, {}));
    return { reply, headers: {}, delayMs: 0, answers: false };
  }

  snapshot(): SimulatorBooks {
    return this.#books.snapshot((hash) => this.#customers.limitsOf(hash), this.#customers.limitsTogether());
  }

  judge({ endpoint, bodyText, key, port }: Call): Verdict {
    const finding = this.#open(key, port, null);
    const keyRefusal = this.refusalOfKey(key);
    if (keyRefusal !== null) return this.#refuse(keyRefusal, finding);
    const requestBody = parseJsonObject(bodyText);
    const inquiry = requestBody === null ? notAnObject() : endpoint.read(requestBody, this.#settings);
    if (isRefusal(inquiry)) return this.#refuse(inquiry, finding);

    const { fate, document } = this.#meet(inquiry, this.#settings, finding);
    const { plan, counts } = fate;
    if (plan.admitted) {
      const tokensCharged = this.#charge(inquiry);
      const hit = finding.customer.account.admit(finding.nowMs, tokensCharged);
      if (hit !== null) {
        finding.behaviour = null;
        finding.overLimit = true;
        return this.#refuse(this.#limitRefusal(inquiry, hit), finding);
      }
      finding.tokensCharged = tokensCharged;
    }
    if (counts) document.met += 1;
    if (plan.admitted) return this.#accept(plan, inquiry, document, finding);
    if ('refusal' in plan) return this.#refuse(plan.refusal, finding);
    return this.#conclude(plan.reply, finding, false);
  }

  /** Judges a line of a batch as a call, but at half the price, and no limit holds it: batches have a queue of their own. */
  judgeLine({ endpoint, requestBody, key, port }: LineCall): LineVerdict {
    const settings = atHalfPrice(this.#settings);
    const inquiry = endpoint.read(requestBody, settings);
    if (isRefusal(inquiry)) return this.#refusedLine(inquiry, null);

    const finding = this.#open(key, port, this.#books.remote.linesRun + 1);
    const { fate, document } = this.#meet(inquiry, settings, finding);
    const { plan, behaviour, counts } = fate;
    if (counts) document.met += 1;
    if (behaviour !== null) this.#books.behave(behaviour);
    if (behaviour === 'line-expired') return { isRun: false };
    if (plan.admitted) {
      finding.customer.accepted += 1;
      this.#books.acceptLine([document, ...finding.companions], plan.tellsUsage ? inquiry : UNBILLED);
    }
    if ('refusal' in plan) return this.#refusedLine(plan.refusal, behaviour);
    const { reply } = plan;
    const body = reply.type === 'send' || reply.type === 'drip' ? reply.body : '';
    // Whoever works a batch off has a call that broke off as an error of the server's.
    if (body === '') {
      return this.#refusedLine(refusal(500, 'The call broke off.', 'server_error', null), behaviour);
    }
    const bodyJson = parseJsonObject(body) === null ? JSON.stringify(body) : body;
    return { isRun: true, status: statusOf(reply) ?? 500, bodyJson, behaviour };
  }

  /** @param lineNumber of a batch's line, which is no call and is not booked as one */
  #open(key: string | null, port: number, lineNumber: number | null): Finding {
    const nowMs = this.#clock.monotonicMs();
    const customer = this.#customers.of(key);
    return {
      callNumber: lineNumber ?? this.#books.arrive(nowMs, customer.keyHash),
      customer,
      port,
      nowMs,
      inquiry: null,
      document: null,
      companions: [],
      behaviour: null,
      tokensCharged: 0,
      overLimit: false,
    };
  }

  /** What the documents of a request meet, which is noted in the finding. */
  #meet(inquiry: Inquiry, settings: SimulatorSettings, finding: Finding) {
    const { callNumber, customer, port, nowMs } = finding;
    const document = this.#books.meet(inquiry.fingerprint, nowMs);
    const stamp = { callNumber, createdSeconds: Math.floor(this.#clock.now() / 1_000) };
    const outageSetMs = this.#outageSetMs;
    const fate = fateOf({ inquiry, document, stamp, customer, nowMs, port, settings, outageSetMs });
    finding.inquiry = inquiry;
    finding.document = document;
    finding.companions = inquiry.companions.map((fingerprint) => this.#books.meet(fingerprint, nowMs));
    finding.behaviour = fate.behaviour;
    return { fate, document };
  }

  #refusedLine(reason: Refusal, behaviour: BehaviourName | null): LineVerdict {
    const bodyJson = errorBody(this.#settings.headers, reason, {});
    return { isRun: true, status: reason.status, bodyJson, behaviour };
  }

  #charge({ promptTokens, completionTokens, outputCapTokens }: Inquiry): number {
    const capTokens = this.#settings.charge === 'cap' ? outputCapTokens : null;
    return promptTokens + (capTokens ?? completionTokens);
  }

  #limitRefusal(inquiry: Inquiry, hit: LimitHit): Refusal {
    if (hit.waitMs === null) return requestTooLarge(inquiry.model, hit.limit, hit.requested);
    return throttled(inquiry.model, hit, tellWait(this.#settings.retryAfter, hit.waitMs));
  }

  #accept(
    plan: Plan & { admitted: true },
    inquiry: Inquiry,
    document: DocumentRecord,
    finding: Finding,
  ): Verdict {
    const { customer, nowMs, companions, tokensCharged } = finding;
    customer.accepted += 1;
    this.#books.accept([document, ...companions], customer.keyHash, nowMs, tokensCharged);
    const { fingerprint, promptTokens, completionTokens, costUsd, isBackground } = inquiry;
    const bill = plan.tellsUsage ? { promptTokens, completionTokens, costUsd } : null;
    const delayMs = plan.delayMs ?? this.#latencyMs(inquiry, document);
    const verdict = { ...this.#conclude(plan.reply, finding, true), delayMs, answers: plan.answers };
    if (isBackground) return { ...verdict, background: { document: fingerprint, bill } };
    if (bill !== null) this.#books.bill(promptTokens, completionTokens);
    return verdict;
  }

  #latencyMs(inquiry: Inquiry, document: DocumentRecord): number {
    const { latencyMs, latencyMsPerDocument, latencyClimb, seed } = this.#settings;
    const documents = 1 + inquiry.companions.length;
    const drawnMs =
      documents * latencyMsPerDocument +
      seededNumber(latencyMs, seed, 'latency', inquiry.fingerprint, document.calls);
    if (latencyClimb === null) return drawnMs;
    const crowd = Math.max(0, this.#books.openCalls - latencyClimb.beyondOpenCalls);
    return drawnMs + crowd * latencyClimb.msPerCall;
  }

  #refuse(refusal: Refusal, finding: Finding): Verdict {
    const { nowMs, document } = finding;
    const { told, status } = refusal;
    if (told !== null && document !== null) document.notBeforeMs = nowMs + told.waitMs;
    const dialect = this.#settings.headers;
    const headers = this.#headers(finding, status);
    const reply = sendJson(status, errorBody(dialect, refusal, headers), retryHeaders(refusal, dialect));
    return this.#conclude(reply, finding, false, headers);
  }

  /** Writes the call down; `headers` are those that every reply of the server itself has. */
  #conclude(
    reply: Reply,
    finding: Finding,
    accepted: boolean,
    headers: Headers = isFromProxy(reply) ? {} : this.#headers(finding, statusOf(reply)),
  ): Verdict {
    const { callNumber, customer, nowMs, inquiry, behaviour, tokensCharged, overLimit } = finding;
    const status = statusOf(reply);
    if (behaviour !== null) this.#books.behave(behaviour);
    if (status !== null && (status < 200 || status > 299)) this.#books.refuse(nowMs, status, overLimit);
    if (!accepted && this.#settings.countRefused) customer.account.charge(nowMs, 0);
    this.#log?.append({
      timeMs: this.#clock.now(),
      monotonicMs: nowMs,
      call: callNumber,
      document: inquiry?.fingerprint ?? null,
      status,
      behaviour,
      accepted,
      promptTokens: inquiry?.promptTokens ?? 0,
      completionTokens: inquiry?.completionTokens ?? 0,
      tokensCharged,
      keyHash: customer.keyHash,
    });
    return { reply, headers, delayMs: 0, answers: false };
  }

  /** Rate limits and request id. */
  #headers(finding: Finding, status: number | null): Headers {
    const { callNumber, customer, nowMs, inquiry, tokensCharged } = finding;
    const dialect = this.#settings.headers;
    const requestId = `req_simulated_${callNumber}`;
    const standing = (name: RuleName) => customer.account.standing(name, nowMs);
    const costUsd = inquiry?.costUsd ?? null;
    const facts = { standing, wallMs: this.#clock.now(), status, requestId, tokensCharged, costUsd };
    return { [requestIdHeader(dialect)]: requestId, ...rateLimitHeaders(dialect, facts) };
  }
}

const UNBILLED: Bill = { promptTokens: 0, completionTokens: 0, costUsd: null };

function atHalfPrice(settings: SimulatorSettings): SimulatorSettings {
  const { prices } = settings;
  if (prices === null) return settings;
  const { inputMicroUsdPerToken, outputMicroUsdPerToken } = prices;
  return {
    ...settings,
    prices: {
      inputMicroUsdPerToken: inputMicroUsdPerToken / 2,
      outputMicroUsdPerToken: outputMicroUsdPerToken / 2,
    },
  };
}

/** `retry-after` in whole seconds (RFC 9110, 10.2.3) and, on Azure, `retry-after-ms` as well. */
function retryHeaders({ told }: Refusal, dialect: SimulatorSettings['headers']): Headers {
  if (told === null || !told.inHeader) return {};
  return {
    'retry-after': String(Math.ceil(told.waitMs / 1_000)),
    ...(dialect === 'azure' && { 'retry-after-ms': String(Math.ceil(told.waitMs)) }),
  };
}
