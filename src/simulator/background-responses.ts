/**
 * Responses that are made in the background: created by a call that is judged as any other, answered with an id at once,
 * and done when the call's answer would have come. They are billed when they are done, and not where they are cancelled
 * before that.
 */
import type { Clock } from '../core/clock.js';
import { isJsonObject, type JsonObject, parseJsonObject } from '../core/json.js';
import type { Bill, Books } from './books.js';
import type { BackgroundOrder, Judge, Verdict } from './judge.js';
import { type Refusal, refusal } from './refusal.js';
import type { ResponseEntry } from './remote-books.js';
import { type Reply, sendJson } from './reply.js';

interface BackgroundResponse {
  readonly entry: ResponseEntry;
  /** As it is once it is done. */
  readonly done: JsonObject;
  readonly startMs: number;
  readonly durationMs: number;
  /** Monotonic; null before the end. */
  endMs: number | null;
  cancelEnd: () => void;
}

type Found = { readonly body: JsonObject } | Refusal;

/** Share of its time that a response waits for its turn. */
const QUEUED = 0.2;

export class BackgroundResponses {
  readonly #judge: Judge;
  readonly #books: Books;
  readonly #clock: Clock;
  readonly #responses = new Map<string, BackgroundResponse>();

  constructor(judge: Judge, books: Books, clock: Clock) {
    this.#judge = judge;
    this.#books = books;
    this.#clock = clock;
  }

  /** @returns what the call gets instead of its answer; itself where it comes to none */
  create(verdict: Verdict, order: BackgroundOrder): Verdict {
    const { reply, delayMs } = verdict;
    const done = answerIn(reply, this.#responses.size + 1);
    if (done === null) return verdict;
    const id = String(done['id']);
    const response: BackgroundResponse = {
      entry: { id, document: order.document, status: 'queued', costUsd: 0, isDeleted: false },
      done: { ...done, background: true },
      startMs: this.#clock.monotonicMs(),
      durationMs: delayMs,
      endMs: null,
      cancelEnd: () => undefined,
    };
    response.cancelEnd = this.#clock.after(delayMs, () => this.#end(response, order.bill));
    this.#responses.set(id, response);
    this.#books.remote.responses.push(response.entry);
    const body = JSON.stringify(this.#describe(response));
    const isCut = reply.type === 'cut';
    return { ...verdict, reply: isCut ? { type: 'cut', body } : sendJson(200, body), delayMs: 0 };
  }

  retrieve(id: string): Found {
    return this.#with(id, (response) => this.#describe(response));
  }

  /** One that is done stays as it is. */
  cancel(id: string): Found {
    return this.#with(id, (response) => {
      if (response.endMs === null) {
        response.cancelEnd();
        response.endMs = this.#clock.monotonicMs();
        response.entry.status = 'cancelled';
      }
      return this.#describe(response);
    });
  }

  remove(id: string): Found {
    return this.#with(id, ({ entry, cancelEnd }) => {
      cancelEnd();
      entry.isDeleted = true;
      return { id, object: 'response', deleted: true };
    });
  }

  close(): void {
    for (const { cancelEnd } of this.#responses.values()) cancelEnd();
  }

  #with(id: string, use: (response: BackgroundResponse) => JsonObject): Found {
    const response = this.#responses.get(id);
    const { expireAfterMs } = this.#judge.settings.background;
    const endMs = response?.endMs ?? Number.POSITIVE_INFINITY;
    const isExpired = this.#clock.monotonicMs() - endMs >= expireAfterMs;
    if (response !== undefined && !response.entry.isDeleted && !isExpired) return { body: use(response) };
    return refusal(404, `Response with id '${id}' not found.`, 'invalid_request_error', null);
  }

  #end(response: BackgroundResponse, bill: Bill | null): void {
    response.endMs = this.#clock.monotonicMs();
    response.entry.status = String(response.done['status']);
    if (bill === null) return;
    this.#books.bill(bill.promptTokens, bill.completionTokens);
    response.entry.costUsd = bill.costUsd ?? 0;
  }

  #describe({ entry, done, startMs, durationMs, endMs }: BackgroundResponse): JsonObject {
    if (endMs !== null && entry.status !== 'cancelled') return done;
    const hasBegun = this.#clock.monotonicMs() - startMs >= QUEUED * durationMs;
    const status = entry.status === 'cancelled' ? entry.status : hasBegun ? 'in_progress' : 'queued';
    const { usage: _, ...rest } = done;
    return { ...rest, status, error: null, incomplete_details: null, output: [], usage: null };
  }
}

/** @returns what the response comes to; null where the call broke before there was one */
function answerIn(reply: Reply, number: number): JsonObject | null {
  if (!('body' in reply) || reply.type === 'drip') return null;
  const body = parseJsonObject(reply.body);
  if (body === null || (reply.type === 'send' && reply.status !== 200)) return null;
  const { error } = body;
  if (!isJsonObject(error)) return typeof body['id'] === 'string' ? body : null;
  // A call that meets an error under status 200 is a response that fails.
  const failure = { code: 'server_error', message: error['message'] ?? '' };
  return { id: `resp_failed_${number}`, object: 'response', status: 'failed', error: failure, output: [] };
}
