/** From an HTTP request to the judge and back. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../core/clock.js';
import { LlmBatchError } from '../core/errors.js';
import { parseJsonObject } from '../core/json.js';
import { REDIRECT_PATH } from './behaviour.js';
import type { Books } from './books.js';
import { chatCompletions } from './chat-completions.js';
import { completions } from './completions.js';
import { embeddings } from './embeddings.js';
import type { Endpoint } from './endpoint.js';
import type { Judge, Verdict } from './judge.js';
import { listModels } from './model-list.js';
import { moderations } from './moderations.js';
import { multiRequest } from './multi-request.js';
import { invalidRequest, isRefusal, refusal, urlNotFound } from './refusal.js';
import { RemoteRoutes } from './remote-routes.js';
import { deliver, sendJson } from './reply.js';
import { responses } from './responses.js';

/** What can be called; a new endpoint is a file of its own and a name here. */
const ENDPOINTS = [chatCompletions, responses, embeddings, completions, moderations, multiRequest];
const LARGEST_REQUEST_BYTES = 64 * 2 ** 20;

export class Router {
  readonly #judge: Judge;
  readonly #books: Books;
  readonly #clock: Clock;
  readonly #remote: RemoteRoutes;

  constructor(judge: Judge, books: Books, clock: Clock) {
    this.#judge = judge;
    this.#books = books;
    this.#clock = clock;
    this.#remote = new RemoteRoutes(judge, books, clock, ENDPOINTS);
  }

  /** Ends the work on batches and lets go of files. */
  close(): Promise<void> {
    return this.#remote.close();
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const method = request.method ?? 'GET';
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    const endpoint = method === 'POST' ? ENDPOINTS.find((one) => one.path === path) : undefined;
    if (endpoint !== undefined) {
      this.#call(endpoint, request, response);
      return;
    }
    if (this.#remote.handle(method, request, response, bearerKeyOf(request))) return;
    readText(request, (text) => this.#guard(response, () => this.#other(method, path, text, request)));
  }

  #call(endpoint: Endpoint, request: IncomingMessage, response: ServerResponse): void {
    let verdict: Verdict | null = null;
    this.#books.open();
    response.once('close', () => this.#books.close(endOf(verdict, response)));
    readText(request, (bodyText) =>
      this.#guard(response, () => {
        if (bodyText === null) {
          response.shouldKeepAlive = false;
          const message = `The body is larger than the ${LARGEST_REQUEST_BYTES} bytes that are read.`;
          return this.#judge.turnAway(refusal(413, message, 'invalid_request_error', 'request_too_large'));
        }
        const port = request.socket.localPort ?? 0;
        const judged = this.#judge.judge({ endpoint, bodyText, key: bearerKeyOf(request), port });
        const { background } = judged;
        verdict = background === undefined ? judged : this.#remote.responses.create(judged, background);
        return verdict;
      }),
    );
  }

  /** What is no call: lists, the simulator's own controls, and addresses that do not exist. */
  #other(method: string, path: string, text: string | null, request: IncomingMessage): Verdict {
    if (path === REDIRECT_PATH) this.#books.followRedirect();
    switch (`${method} ${path}`) {
      case 'GET /simulator/books':
        return plain(this.#judge.snapshot());
      case 'POST /simulator/heal':
        this.#judge.heal();
        return plain({ ok: true });
      case 'POST /simulator/reconfigure':
        return this.#reconfigure(text ?? '');
    }
    const listed = method === 'GET' ? listModels(path, this.#judge.settings) : null;
    if (listed === null) return this.#judge.turnAway(urlNotFound(method, path));
    const answer = this.#judge.refusalOfKey(bearerKeyOf(request)) ?? listed;
    return isRefusal(answer) ? this.#judge.turnAway(answer) : plain(answer);
  }

  #reconfigure(text: string): Verdict {
    const changes = parseJsonObject(text);
    if (changes === null) {
      return this.#judge.turnAway(invalidRequest('The options are not a JSON object.', null, null));
    }
    try {
      this.#judge.reconfigure(changes);
    } catch (error) {
      if (!(error instanceof LlmBatchError)) throw error;
      return this.#judge.turnAway(invalidRequest(error.message, null, error.code));
    }
    return plain({ ok: true });
  }

  /** A mistake of the simulator's own is told to the caller and the books; it must not take a run down with it. */
  #guard(response: ServerResponse, judge: () => Verdict): void {
    try {
      const { reply, headers, delayMs } = judge();
      deliver(reply, headers, delayMs, response, this.#clock);
    } catch (error) {
      const message = `The simulator failed: ${error instanceof Error ? error.message : String(error)}`;
      this.#books.noteDefect(message);
      const reason = refusal(500, message, 'server_error', 'simulator_defect');
      if (!response.headersSent) deliver(this.#judge.turnAway(reason).reply, {}, 0, response, this.#clock);
      else response.destroy();
    }
  }
}

/** Calls back with the body as text, or null when it is larger than is read; not at all when the caller leaves. */
function readText(request: IncomingMessage, callback: (text: string | null) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= LARGEST_REQUEST_BYTES) chunks.push(chunk);
  });
  request.on('end', () => {
    if (bytes > LARGEST_REQUEST_BYTES) callback(null);
    else callback(chunks.length === 1 ? String(chunks[0]) : Buffer.concat(chunks).toString());
  });
}

/** From `authorization: Bearer KEY`, or Azure's `api-key`. */
function bearerKeyOf({ headers }: IncomingMessage): string | null {
  const { authorization } = headers;
  if (authorization !== undefined && /^bearer /i.test(authorization)) {
    return authorization.slice('bearer '.length).trim() || null;
  }
  const key = headers['api-key'];
  return typeof key === 'string' && key !== '' ? key : null;
}

function endOf(verdict: Verdict | null, response: ServerResponse): 'answered' | 'delivered' | 'abandoned' {
  if (verdict === null) return response.writableFinished ? 'delivered' : 'abandoned';
  const brokenOnPurpose = verdict.reply.type === 'reset' || verdict.reply.type === 'cut';
  if (!brokenOnPurpose && !response.writableFinished) return 'abandoned';
  return verdict.answers ? 'answered' : 'delivered';
}

function plain(value: object): Verdict {
  return { reply: sendJson(200, JSON.stringify(value)), headers: {}, delayMs: 0, answers: false };
}
