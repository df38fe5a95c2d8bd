/**
 * A client of `llm-batch serve`, for programs: hand in tasks and runs, and wait for what they come to. Needs nothing but
 * `fetch`; exported as `llm-batch/client`.
 */
import { type Clock, type Random, systemClock, systemRandom } from '../core/clock.js';

export interface ClientOptions {
  /** Where the service is, e.g. `http://127.0.0.1:8080`. */
  readonly server: string;
  /** One of its tokens; null: it has none. */
  readonly token?: string | null;
  readonly fetch?: typeof globalThis.fetch;
  /** Told each time that the service could not answer what is polled, which is asked again. */
  readonly onUnanswered?: (error: unknown) => void;
  readonly clock?: Clock;
  readonly random?: Random;
}

/** A request, or a document; see the service's /openapi.json. */
export interface NewClientTask {
  readonly request?: Readonly<Record<string, unknown>>;
  readonly document?: Readonly<Record<string, unknown>>;
  readonly prompt?: string;
  readonly model?: string;
  readonly endpoint?: string;
  readonly priority?: number;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly max_attempts?: number;
  readonly webhook_url?: string;
}

export interface AcceptedWork {
  readonly id: string;
  readonly status: 'pending';
}

export interface ClientTask {
  readonly id: string;
  readonly status: 'pending' | 'in_progress' | 'completed' | 'failed';
  /** A line of a results file; null while it is open, and where it failed. */
  readonly result: Readonly<Record<string, unknown>> | null;
  readonly error: { readonly kind: string; readonly message: string } | null;
}

export interface ClientRun {
  readonly id: string;
  readonly status: 'importing' | 'open' | 'finished' | 'cancelled';
  readonly documents: Readonly<
    Record<'total' | 'pending' | 'in_progress' | 'completed' | 'failed' | 'cancelled', number>
  >;
  readonly cost_usd: number;
  readonly halt_reason: string | null;
}

export interface SubmitWorkOptions {
  /** Handed in again with the same key, it is the same: a new one each time where none is given. */
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
}

export interface SubmitRunOptions extends SubmitWorkOptions {
  readonly prompt?: string;
  readonly model?: string;
  readonly endpoint?: string;
}

/** What the service refuses, as its problem details say it. */
export class ServiceProblem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly errors: readonly { readonly field: string; readonly message: string }[],
    /** When to try again; null: it did not say. */
    readonly retryAfterMs: number | null,
  ) {
    super(detail);
    this.name = 'ServiceProblem';
  }
}

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
/** So that clients that began together do not ask together for ever. */
const JITTER = 0.25;

interface Asked<Value> {
  readonly value: Value;
  readonly retryAfterMs: number | null;
}

export class LlmBatchClient {
  readonly #server: string;
  readonly #token: string | null;
  readonly #fetch: typeof globalThis.fetch;
  readonly #onUnanswered: (error: unknown) => void;
  readonly #clock: Clock;
  readonly #random: Random;

  /** @throws TypeError for a server that is no http or https URL, and a token that cannot be one; it does not repeat it */
  constructor(options: ClientOptions) {
    const { server, token = null, fetch = globalThis.fetch, onUnanswered, clock, random } = options;
    const url = URL.canParse(server) ? new URL(server) : null;
    if (url === null || !/^https?:$/.test(url.protocol))
      throw new TypeError('server is no http or https URL');
    if (url.username + url.password !== '') throw new TypeError('server holds a user name or a password');
    if (token !== null && !/^[\x21-\x7e]+$/.test(token)) {
      throw new TypeError('token is empty, or holds what no header can carry');
    }
    this.#onUnanswered = onUnanswered ?? (() => undefined);
    this.#server = server.replace(/\/+$/, '');
    this.#token = token;
    this.#fetch = fetch;
    this.#clock = clock ?? systemClock;
    this.#random = random ?? systemRandom;
  }

  /** Resolves once the task is on the service's disk. @throws ServiceProblem; what `fetch` throws */
  async submit(task: NewClientTask, options: SubmitWorkOptions = {}): Promise<AcceptedWork> {
    return this.#json('POST', '/v1/tasks', {
      ...{ body: JSON.stringify(task), contentType: 'application/json' },
      ...options,
    });
  }

  /** @throws ServiceProblem 404, or 410 after its time to live */
  get(id: string, signal?: AbortSignal): Promise<ClientTask> {
    return this.#json('GET', taskPath(id), signal === undefined ? {} : { signal });
  }

  /**
   * Waits until a task has ended, asking after 1 s, 2 s, … 30 s, or as the service says. An interrupted connection and a
   * busy service are waited for; the signal ends the wait.
   * @throws ServiceProblem 404, 410; the signal's reason
   */
  poll(id: string, signal?: AbortSignal): Promise<ClientTask> {
    const isOver = ({ status }: ClientTask): boolean => status === 'completed' || status === 'failed';
    return this.#poll(taskPath(id), isOver, signal);
  }

  /** @throws ServiceProblem 404, 409 where it has ended, 410 */
  async cancel(id: string): Promise<void> {
    await this.#ask('DELETE', taskPath(id), {});
  }

  /** Sends a failed task again. @throws ServiceProblem 404, 409 where it has not failed, 410 */
  retry(id: string): Promise<AcceptedWork> {
    return this.#json('POST', `${taskPath(id)}/retry`, {});
  }

  /**
   * Hands in a whole run.
   * @param lines JSONL; a stream is sent as it comes
   * @throws ServiceProblem 422 naming bad lines
   */
  submitRun(
    lines: string | AsyncIterable<Uint8Array>,
    { prompt, model, endpoint, ...options }: SubmitRunOptions = {},
  ): Promise<AcceptedWork> {
    const asked = Object.entries({ prompt, model, endpoint }).filter((each) => each[1] !== undefined);
    const query = new URLSearchParams(asked as [string, string][]).toString();
    return this.#json('POST', `/v1/runs${query === '' ? '' : `?${query}`}`, {
      ...{ body: lines, contentType: 'application/jsonl' },
      ...options,
    });
  }

  /** @throws ServiceProblem 404, 410 */
  run(id: string, signal?: AbortSignal): Promise<ClientRun> {
    return this.#json('GET', runPath(id), signal === undefined ? {} : { signal });
  }

  /** As `poll`, for a run. */
  pollRun(id: string, signal?: AbortSignal): Promise<ClientRun> {
    const isOver = ({ status }: ClientRun): boolean => status === 'finished' || status === 'cancelled';
    return this.#poll(runPath(id), isOver, signal);
  }

  /** @throws ServiceProblem 404, 409 where it has ended, 410 */
  async cancelRun(id: string): Promise<void> {
    await this.#ask('DELETE', runPath(id), {});
  }

  /** The results of a run so far, as JSONL. @throws ServiceProblem 404, 410 */
  async *results(id: string, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const { body } = await this.#ask('GET', `${runPath(id)}/results`, signal === undefined ? {} : { signal });
    if (body !== null) yield* body;
  }

  async #poll<Value>(
    path: string,
    isOver: (value: Value) => boolean,
    signal: AbortSignal | undefined,
  ): Promise<Value> {
    let waitMs = FIRST_WAIT_MS;
    for (;;) {
      signal?.throwIfAborted();
      const asked = await this.#look<Value>(path, signal);
      if (asked.value !== null && isOver(asked.value)) return asked.value;
      const spreadMs = waitMs * (1 + JITTER * this.#random());
      await this.#clock.sleep(Math.max(asked.retryAfterMs ?? 0, spreadMs), signal);
      waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2);
    }
  }

  /** Null where the service could not answer now. */
  async #look<Value>(path: string, signal: AbortSignal | undefined): Promise<Asked<Value | null>> {
    try {
      const response = await this.#ask('GET', path, signal === undefined ? {} : { signal });
      return { value: (await response.json()) as Value, retryAfterMs: retryAfterMs(response) };
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof ServiceProblem && error.status < 500) throw error;
      this.#onUnanswered(error);
      return { value: null, retryAfterMs: error instanceof ServiceProblem ? error.retryAfterMs : null };
    }
  }

  async #json<Value>(method: string, path: string, options: AskOptions): Promise<Value> {
    return (await this.#ask(method, path, options)).json() as Promise<Value>;
  }

  async #ask(method: string, path: string, options: AskOptions): Promise<Response> {
    const { body, contentType, idempotencyKey, signal } = options;
    const isNew = body !== undefined;
    const response = await this.#fetch(`${this.#server}${path}`, {
      method,
      redirect: 'error',
      ...(signal === undefined ? {} : { signal }),
      headers: {
        ...(this.#token === null ? {} : { authorization: `Bearer ${this.#token}` }),
        ...(contentType === undefined ? {} : { 'content-type': contentType }),
        ...(isNew ? { 'idempotency-key': idempotencyKey ?? crypto.randomUUID() } : {}),
      },
      ...(isNew ? { body, duplex: 'half' } : {}),
    } as RequestInit);
    if (response.ok) return response;
    throw await problemIn(response);
  }
}

interface AskOptions extends SubmitWorkOptions {
  readonly body?: string | AsyncIterable<Uint8Array>;
  readonly contentType?: string;
}

function taskPath(id: string): string {
  return `/v1/tasks/${encodeURIComponent(id)}`;
}

function runPath(id: string): string {
  return `/v1/runs/${encodeURIComponent(id)}`;
}

function retryAfterMs({ headers }: Response): number | null {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds * 1_000, LONGEST_WAIT_MS) : null;
}

async function problemIn(response: Response): Promise<ServiceProblem> {
  const body = (await response.json().catch(() => ({}))) as {
    readonly code?: string;
    readonly detail?: string;
    readonly errors?: ServiceProblem['errors'];
  };
  const detail = body.detail ?? `The service answered ${response.status}.`;
  return new ServiceProblem(
    response.status,
    body.code ?? 'unknown',
    detail,
    body.errors ?? [],
    retryAfterMs(response),
  );
}
