/** What the service does with its store, whoever asks: submissions, tasks and runs, by their public ids. */
import { createHash, type Hash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { Clock } from '../core/clock.js';
import { digest } from '../core/digest.js';
import { LlmBatchError } from '../core/errors.js';
import type { ResultFilter, ResultRow, TaskRow } from '../core/result-row.js';
import type { RunRecord } from '../core/run.js';
import type { Idempotency, NewServedTask, ServedTask, SubmissionOutcome } from '../core/served-task.js';
import type { TraceWork } from '../core/trace-work.js';
import type { BadLine } from '../input/bad-line.js';
import { resultLine } from '../results/result-line.js';
import { importNew } from '../runs/import-input.js';
import { removeRun } from '../runs/prune-runs.js';
import { readPages } from '../runs/read-documents.js';
import { retryRun } from '../runs/retry-run.js';
import { submissionObserved } from '../runs/run-observations.js';
import { type RunSettings, settingsToJson } from '../runs/run-settings.js';
import { storedResults } from '../runs/stored-results.js';
import type { Store } from '../store/store.js';
import { GroupCommit } from './group-commit.js';
import { Problem, type ProblemOfField, unprocessable } from './problem.js';
import { newPublicId, type PublicIdKind, timeOfPublicId } from './public-id.js';
import { runFacts } from './run-facts.js';
import { type AskedWith, type Submission, settingsOfTasks, TaskIntake } from './task-intake.js';

export interface ServiceOptions {
  /** Opened for writing. */
  readonly store: Store;
  /** Of the runs that the service makes; its request settings hold where a submission says nothing. */
  readonly settings: RunSettings;
  /** Documents that may be open at once. */
  readonly mostOpen: number;
  /** How long results are kept. */
  readonly ttlMs: number;
  readonly maxLineBytes: number;
  readonly clock: Clock;
  /** Why a webhook's address is refused; null: it is not. */
  readonly refuseWebhook: (url: string) => string | null;
  readonly trace: TraceWork;
  /** Told when there is something new to be drained. */
  readonly onWork: () => void;
}

export interface Accepted {
  readonly id: string;
  /** It was submitted before. */
  readonly isRepeated: boolean;
}

/** The trace of a caller and his word for a submission that may come twice. */
export interface SubmissionHeaders {
  readonly idempotencyKey: string | null;
  readonly traceparent: string | null;
}

/** One commit of more would keep the event loop for longer than anybody should wait. */
const MOST_IN_A_COMMIT = 500;
const BACKLOG_RETRY_SECONDS = 30;
const RESULT_PAGE_ROWS = 100;
const MOST_BAD_LINES_TOLD = 20;
const RUN_NAME = 'served';

export class TaskService {
  readonly #options: ServiceOptions;
  readonly #intake: TaskIntake;
  readonly #submissions: GroupCommit<NewServedTask, SubmissionOutcome>;
  /** Of all single tasks. */
  #runId = 0;

  private constructor(options: ServiceOptions) {
    this.#options = options;
    this.#intake = new TaskIntake(options.settings.request);
    this.#submissions = new GroupCommit((tasks) => this.#submitAll(tasks), MOST_IN_A_COMMIT);
  }

  /** The run of single tasks goes on under the settings that hold now; what a crash left half taken is removed. */
  static async open(options: ServiceOptions): Promise<TaskService> {
    const service = new TaskService(options);
    await service.#removeCutOff();
    await service.#openRun();
    return service;
  }

  /**
   * @param text the body as it came
   * @throws Problem 409, 422, 503
   */
  async submit(submission: Submission, text: string, headers: SubmissionHeaders): Promise<Accepted> {
    const { webhook_url: webhookUrl = null } = submission;
    if (webhookUrl !== null) {
      const refusal = this.#options.refuseWebhook(webhookUrl);
      if (refusal !== null) throw unprocessable('webhook_url', refusal);
    }
    const { trace } = this.#options;
    return trace('POST /v1/tasks', headers.traceparent, (traceparent) =>
      this.#submit(submission, text, { ...headers, traceparent }),
    );
  }

  async #submit(submission: Submission, text: string, headers: SubmissionHeaders): Promise<Accepted> {
    const { webhook_url: webhookUrl = null, max_attempts: maxAttempts = null } = submission;
    const content = this.#intake.read(submission, text);
    const publicId = newPublicId('task', this.#options.clock.now());
    const idempotency = idempotencyOf('tasks', headers, digest(text));
    const { traceparent } = headers;
    const outcome = await this.#submissions.add({
      ...content,
      ...{ publicId, idempotency, maxAttempts, webhookUrl, traceparent },
    });
    if (outcome.type === 'accepted') this.#options.onWork();
    return acceptedOf(outcome, publicId);
  }

  /** The JSON of a task as its submitter sees it, and how soon he may ask again. @throws Problem 404, 410 */
  async task(
    publicId: string,
  ): Promise<{ readonly json: string; readonly retryAfterSeconds: number | null }> {
    const { store, clock } = this.#options;
    const task = await this.#find(publicId);
    const [row] = await store.readTasks(task.runId, [task.taskId], false);
    if (row === undefined) throw this.#missing('task', publicId);
    const isOpen = ['pending', 'in_progress'].includes(statusOf(row));
    return {
      json: taskJson(publicId, row),
      retryAfterSeconds: isOpen ? pollHint(clock.now() - task.submittedAtMs) : null,
    };
  }

  /** @throws Problem 404, 409, 410 */
  async cancelTask(publicId: string): Promise<void> {
    const { state } = await this.#find(publicId);
    if (await this.#options.store.served.cancel(publicId)) return;
    if (state !== 'cancelled') throw new Problem(409, 'The task has ended already.', { code: 'ended' });
  }

  /** A failed task is open again. @throws Problem 404, 409, 410 */
  async retryTask(publicId: string): Promise<void> {
    const { store, onWork } = this.#options;
    const { runId } = await this.#find(publicId);
    const run = (await store.listRuns()).find(({ id }) => id === runId);
    const count = run === undefined ? 0 : await retryRun(store, run, { kind: null, id: publicId });
    if (count === 0)
      throw new Problem(409, 'Only a task that failed can be retried.', { code: 'not_failed' });
    onWork();
  }

  /**
   * Takes a whole run, a document a line, with memory that does not grow with it. Nothing of it is kept unless all is.
   * @param body JSONL
   * @throws Problem 409, 422, 503
   */
  submitRun(body: Readable, asked: AskedWith, headers: SubmissionHeaders): Promise<Accepted> {
    return this.#options.trace('POST /v1/runs', headers.traceparent, (traceparent) =>
      this.#submitRun(body, asked, { ...headers, traceparent }),
    );
  }

  async #submitRun(body: Readable, asked: AskedWith, headers: SubmissionHeaders): Promise<Accepted> {
    const { store, settings, clock, onWork } = this.#options;
    await this.#refuseFull(0);
    const publicId = newPublicId('run', clock.now());
    const request = this.#intake.settingsFor(asked);
    const run = await store.createRun({
      name: publicId,
      inputPath: '-',
      simulated: settings.simulator !== null,
      settings: settingsToJson({ ...settings, request }, store),
      createdAtMs: clock.now(),
    });
    try {
      await store.served.adoptRun(run.id, true);
      if (headers.traceparent !== null) {
        await store.noteObservations(run.id, [submissionObserved(headers.traceparent)]);
      }
      const outcome = await this.#importRun(run, body, request, asked, headers);
      if (outcome.type === 'accepted') onWork();
      else await removeRun(store, run.id);
      return acceptedOf(outcome, publicId);
    } catch (error) {
      // What cannot be removed now, on a full disk, is when the service starts again.
      await removeRun(store, run.id).catch(() => undefined);
      throw error;
    }
  }

  /** @throws Problem 404, 410 */
  async run(name: string): Promise<string> {
    const run = await this.#findRun(name);
    return JSON.stringify(runFacts(run, await this.#options.store.summarizeRun(run.id)));
  }

  /** Its results as lines. @throws Problem 404, 410 */
  async results(name: string, only: ResultFilter): Promise<Readable> {
    const { store } = this.#options;
    const { id: runId } = await this.#findRun(name);
    return Readable.from(linesOf(storedResults(store, runId, only, RESULT_PAGE_ROWS)));
  }

  /** @throws Problem 404, 409, 410 */
  async cancelRun(name: string): Promise<void> {
    const run = await this.#findRun(name);
    if (run.status === 'cancelled') return;
    if (run.status === 'finished') throw new Problem(409, 'The run has ended already.', { code: 'ended' });
    await this.#options.store.cancelRun(run.id);
  }

  /** Its failed documents are open again. @throws Problem 404, 409, 410 */
  async retryRun(name: string): Promise<void> {
    const { store, onWork } = this.#options;
    const run = await this.#findRun(name);
    const count = await retryRun(store, run, { kind: null, id: null });
    if (count === 0) throw new Problem(409, 'No document of the run has failed.', { code: 'not_failed' });
    onWork();
  }

  /** Resolves when all submissions that were taken in are committed. */
  settled(): Promise<void> {
    return this.#submissions.settled();
  }

  async #submitAll(tasks: readonly NewServedTask[]): Promise<readonly SubmissionOutcome[]> {
    const { store, mostOpen, ttlMs } = this.#options;
    try {
      return await store.served.submit(this.#runId, tasks, { mostOpen, ttlMs });
    } catch (error) {
      const isOver = error instanceof LlmBatchError && ['RUN_CANCELLED', 'RUN_MISSING'].includes(error.code);
      if (!isOver) throw error;
      await this.#openRun();
      return store.served.submit(this.#runId, tasks, { mostOpen, ttlMs });
    }
  }

  async #openRun(): Promise<void> {
    const { store, settings, clock } = this.#options;
    const simulated = settings.simulator !== null;
    const json = settingsToJson({ ...settings, request: settingsOfTasks(settings.request) }, store);
    const runs = await store.listRuns();
    const served = new Set(
      (await store.served.listRuns()).filter(({ isBulk }) => !isBulk).map(({ runId }) => runId),
    );
    const mine = runs.find(
      (run) => served.has(run.id) && run.simulated === simulated && run.status !== 'cancelled',
    );
    if (mine !== undefined) {
      this.#runId = mine.id;
      await store.updateRun(mine.id, { settings: json });
      return;
    }
    const taken = new Set(runs.map(({ name }) => name));
    const base = simulated ? `${RUN_NAME}-simulated` : RUN_NAME;
    let name = base;
    for (let number = 2; taken.has(name); number += 1) name = `${base}-${number}`;
    const newRun = { name, inputPath: '-', simulated, settings: json, createdAtMs: clock.now() };
    const run = await store.createRun(newRun).catch((error: unknown) => {
      // Another service has begun at the same time on the same store.
      if (error instanceof LlmBatchError && error.code === 'RUN_NAME_TAKEN') return null;
      throw error;
    });
    if (run === null) return this.#openRun();
    await store.served.adoptRun(run.id, false);
    await store.updateRun(run.id, { status: 'finished' });
    this.#runId = run.id;
  }

  /** Runs whose documents were still coming in when a process died: nobody was told that they were taken. */
  async #removeCutOff(): Promise<void> {
    const { store, clock, ttlMs } = this.#options;
    for (const run of await store.listRuns()) {
      if (run.status !== 'importing' || timeOfPublicId('run', run.name) === null) continue;
      // Where several processes share a store, another may be at it.
      if (store.capabilities.sharedDrain && clock.now() - run.createdAtMs < ttlMs) continue;
      await removeRun(store, run.id);
    }
  }

  async #importRun(
    run: RunRecord,
    body: Readable,
    request: RunSettings['request'],
    asked: AskedWith,
    headers: SubmissionHeaders,
  ): Promise<SubmissionOutcome> {
    const { store, maxLineBytes } = this.#options;
    const hash = createHash('sha256').update(JSON.stringify(asked));
    const stdin = Readable.from(hashed(body, hash));
    const of = { names: ['-'], folder: '/', stdin, spool: null } as const;
    const input = { ...of, format: 'jsonl', query: null, maxLineBytes } as const;
    const bad: BadLine[] = [];
    const { signal } = new AbortController();
    let outcome: SubmissionOutcome = { type: 'accepted' };
    let documents = 0;
    const pages = readPages(input, { request, signal, tell: () => undefined });
    const refuseFull = (): Promise<void> => this.#refuseFull(documents);
    try {
      await importNew({
        store,
        run,
        async *readPages() {
          for await (const page of pages) {
            documents += page.documents.length;
            await refuseFull();
            yield page;
          }
        },
        skipBadLines: false,
        signal,
        onBadLines: (lines) => void bad.push(...lines.slice(0, MOST_BAD_LINES_TOLD - bad.length)),
        async open() {
          const idempotency = idempotencyOf('runs', headers, hash.digest('base64url'));
          outcome = await store.served.openRun(run.id, run.name, idempotency);
        },
      });
    } catch (error) {
      if (bad.length === 0 || !(error instanceof LlmBatchError)) throw error;
      throw new Problem(422, error.message, { code: 'bad_lines', errors: bad.map(problemOfLine) });
    }
    return outcome;
  }

  /** @param more documents that are on their way into a run @throws Problem 503 */
  async #refuseFull(more: number): Promise<void> {
    const { store, mostOpen } = this.#options;
    let open = more;
    const served = new Set((await store.served.listRuns()).map(({ runId }) => runId));
    for (const { id, status } of await store.listRuns()) {
      if (status !== 'open' || !served.has(id)) continue;
      const { ready, delayed, in_progress } = (await store.summarizeRun(id)).counts;
      open += ready + delayed + in_progress;
    }
    if (open > mostOpen) throw backlogFull();
  }

  async #find(publicId: string): Promise<ServedTask> {
    const task = await this.#options.store.served.find(publicId);
    if (task === null) throw this.#missing('task', publicId);
    return task;
  }

  async #findRun(name: string): Promise<RunRecord> {
    const run = (await this.#options.store.listRuns()).find((each) => each.name === name);
    if (run === undefined) throw this.#missing('run', name);
    return run;
  }

  #missing(kind: PublicIdKind, id: string): Problem {
    const { clock, ttlMs } = this.#options;
    const atMs = timeOfPublicId(kind, id);
    if (atMs !== null && atMs <= clock.now() - ttlMs) {
      return new Problem(410, `The ${kind} has lived its time and was removed.`, { code: 'expired' });
    }
    return new Problem(404, `There is no ${kind} with this id.`, { code: 'not_found' });
  }
}

/** Seconds: one that has waited for long is asked for ever more seldom. */
function pollHint(ageMs: number): number {
  return Math.min(30, Math.max(1, Math.round(ageMs / 4_000)));
}

function idempotencyOf(
  route: string,
  { idempotencyKey }: SubmissionHeaders,
  bodyHash: string,
): Idempotency | null {
  return idempotencyKey === null ? null : { key: digest(idempotencyKey), bodyHash: `${route}:${bodyHash}` };
}

function acceptedOf(outcome: SubmissionOutcome, id: string): Accepted {
  switch (outcome.type) {
    case 'accepted':
      return { id, isRepeated: false };
    case 'repeated':
      return { id: outcome.publicId, isRepeated: true };
    case 'conflict':
      throw new Problem(409, 'This Idempotency-Key was used for another body.', { code: 'idempotency_key' });
    case 'backlog_full':
      throw backlogFull();
  }
}

function backlogFull(): Problem {
  return new Problem(503, 'Too many documents are waiting; nothing of this was taken.', {
    code: 'backlog_full',
    retryAfterSeconds: BACKLOG_RETRY_SECONDS,
  });
}

function problemOfLine({ line, reason, ...rest }: BadLine): ProblemOfField {
  const { field } = rest as { readonly field?: string };
  return { field: field === undefined ? `line ${line}` : `line ${line}: ${field}`, message: reason };
}

async function* hashed(body: Readable, hash: Hash): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    hash.update(chunk as Uint8Array);
    yield chunk as Uint8Array;
  }
}

async function* linesOf(pages: AsyncIterable<readonly ResultRow[]>): AsyncGenerator<string> {
  for await (const page of pages) {
    let text = '';
    for (const row of page) text += `${resultLine(row, { includeInput: false })}\n`;
    if (text !== '') yield text;
  }
}

type Status = 'pending' | 'in_progress' | 'completed' | 'failed';

function statusOf({ state }: TaskRow): Status {
  switch (state) {
    case 'ready':
    case 'delayed':
      return 'pending';
    case 'cancelled':
      return 'failed';
    default:
      return state;
  }
}

/** What `GET /v1/tasks/{id}` answers, and a webhook posts. */
export function taskJson(publicId: string, row: TaskRow): string {
  const status = statusOf(row);
  const result = status === 'completed' ? resultLine(settled(row), { includeInput: false }) : 'null';
  return `{"id":${JSON.stringify(publicId)},"status":"${status}","result":${result},"error":${errorJson(row)}}`;
}

function settled(row: TaskRow): ResultRow {
  return { ...row, settledAtMs: row.settledAtMs ?? 0 };
}

function errorJson({ state, error }: TaskRow): string {
  if (state === 'cancelled') return JSON.stringify({ kind: 'cancelled', message: 'The task was cancelled.' });
  if (error === null) return 'null';
  const { kind, message, httpStatus, code, requestId } = error;
  return JSON.stringify({ kind, message, http_status: httpStatus, code, request_id: requestId });
}
