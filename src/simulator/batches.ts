/**
 * Batches and the hand that works them off: validating, in_progress, finalizing, completed, in as much time as the options
 * say. Their lines are judged as calls are; what is theirs alone (expiry, lost lines, order) is played here.
 */
import { type Clock, nextTurn, WOKEN } from '../core/clock.js';
import { isJsonObject, type Json, type JsonObject } from '../core/json.js';
import { BatchFileCheck, type BatchFileError, endpointName, readBatchLine } from './batch-file.js';
import type { Books } from './books.js';
import type { Endpoint } from './endpoint.js';
import type { Judge, LineVerdict } from './judge.js';
import type { BatchFault } from './options.js';
import { invalidRequest, type Refusal, refusal } from './refusal.js';
import type { BatchEntry } from './remote-books.js';
import type { Shelf, ShelvedFile } from './shelf.js';

export interface Batch {
  readonly id: string;
  /** What the books have of it. */
  readonly entry: BatchEntry;
  readonly input: ShelvedFile;
  readonly served: Endpoint;
  /** Of whom handed it in. */
  readonly key: string | null;
  readonly port: number;
  readonly window: string;
  readonly startMs: number;
  /** Ends every wait of its work. */
  readonly hurry: AbortController;
  readonly seconds: Record<string, number>;
  errors: readonly BatchFileError[];
  outputFileId: string | null;
  errorFileId: string | null;
}

/** As OpenAI's API reference has them. */
const MOST_METADATA = 16;
const LONGEST_METADATA_NAME = 64;
const LONGEST_METADATA_VALUE = 512;

/** Shares of a batch's time. */
const VALIDATED = 0.1;
const WORKED_OFF = 0.9;

const BYTES_PER_TOKEN = 4;
const DAY_SECONDS = 86_400;
/** Between two looks at the rest of the server. */
const LINES_AT_A_TIME = 100;
/** Waits that are shorter are not worth a timer. */
const SHORT_WAIT_MS = 10;
const WRITTEN_CHARACTERS = 256 * 1024;

/** States of which it is told when they were entered. */
const DATED = ['in_progress', 'finalizing', 'completed', 'failed', 'expired', 'cancelling', 'cancelled'];
const OVER: readonly string[] = ['completed', 'failed', 'expired', 'cancelled'];

export interface BatchesDependencies {
  readonly judge: Judge;
  readonly books: Books;
  readonly shelf: Shelf;
  readonly clock: Clock;
  readonly endpoints: readonly Endpoint[];
}

export class Batches {
  readonly #dependencies: BatchesDependencies;
  readonly #batches = new Map<string, Batch>();
  #closed = false;

  constructor(dependencies: BatchesDependencies) {
    this.#dependencies = dependencies;
  }

  /** @param key of whom hands it in */
  create(asked: JsonObject, key: string | null, port: number): Batch | Refusal {
    const { shelf, endpoints, books, clock, judge } = this.#dependencies;
    const { endpoint, input_file_id: inputFileId, completion_window: window, metadata = null } = asked;
    const input = typeof inputFileId === 'string' ? shelf.get(inputFileId) : undefined;
    if (input?.purpose !== 'batch') {
      const message = `No such batch file: ${String(inputFileId)}.`;
      return invalidRequest(message, 'input_file_id', 'invalid_file_id');
    }
    const served = endpoints.find(
      ({ path }) => typeof endpoint === 'string' && endpointName(path) === endpointName(endpoint),
    );
    if (served === undefined) {
      const message = `Invalid value for 'endpoint': ${String(endpoint)}.`;
      return invalidRequest(message, 'endpoint', 'invalid_value');
    }
    if (window !== '24h') {
      return invalidRequest("The completion_window must be '24h'.", 'completion_window', 'invalid_value');
    }
    if (!isMetadata(metadata)) {
      const message = `At most ${MOST_METADATA} pairs of text, the name within ${LONGEST_METADATA_NAME} and the value within ${LONGEST_METADATA_VALUE} characters.`;
      return invalidRequest(message, 'metadata', 'invalid_value');
    }
    if (judge.settings.batches.queueFullAt === 'creation' && this.#overflows(input)) {
      return refusal(429, this.#queueFull('the model'), 'invalid_request_error', 'token_limit_exceeded');
    }
    const id = `batch_simulated_${this.#batches.size + 1}`;
    const entry: BatchEntry = {
      ...{ id, metadata: metadata ?? {}, inputFileId: input.id, endpoint: String(endpoint), model: null },
      ...{ status: 'validating', total: 0, completed: 0, failed: 0 },
    };
    const batch: Batch = {
      id,
      entry,
      input,
      served,
      key,
      port,
      window,
      startMs: clock.monotonicMs(),
      hurry: new AbortController(),
      seconds: {},
      errors: [],
      outputFileId: null,
      errorFileId: null,
    };
    this.#enter(batch, 'created');
    this.#batches.set(batch.id, batch);
    books.remote.batches.push(entry);
    void this.#work(batch).catch((error: unknown) => {
      if (this.#closed) return;
      books.noteDefect(`A batch could not be worked off: ${String(error)}`);
      this.#enter(batch, 'failed');
    });
    return batch;
  }

  get(id: string): Batch | undefined {
    return this.#batches.get(id);
  }

  /** Newest first. */
  list(): Batch[] {
    return [...this.#batches.values()].reverse();
  }

  cancel(batch: Batch): Refusal | null {
    const { status } = batch.entry;
    if (OVER.includes(status)) {
      const message = `Cannot cancel a batch with status '${status}'.`;
      return refusal(409, message, 'invalid_request_error', null);
    }
    this.#enter(batch, 'cancelling');
    batch.hurry.abort(WOKEN);
    return null;
  }

  describe(batch: Batch): JsonObject {
    const dialect = this.#dependencies.judge.settings.headers;
    const { entry, seconds } = batch;
    const { id, endpoint, status, metadata, total, completed, failed } = entry;
    const errors: Json = batch.errors.map((error) => ({ ...error }));
    return {
      id,
      object: 'batch',
      endpoint,
      errors: errors.length === 0 ? null : dialect === 'groq' ? errors : { object: 'list', data: errors },
      input_file_id: entry.inputFileId,
      completion_window: batch.window,
      status: dialect === 'together' ? status.toUpperCase() : status,
      output_file_id: batch.outputFileId,
      error_file_id: batch.errorFileId,
      created_at: seconds['created'] ?? 0,
      expires_at: (seconds['created'] ?? 0) + DAY_SECONDS,
      ...Object.fromEntries(DATED.map((state) => [`${state}_at`, seconds[state] ?? null])),
      request_counts: { total, completed, failed },
      metadata: { ...metadata },
    };
  }

  close(): void {
    this.#closed = true;
    for (const { hurry } of this.#batches.values()) hurry.abort(WOKEN);
  }

  /** The clock's word on a state, which `cancelling` alone keeps from being shown. */
  #enter(batch: Batch, status: string): void {
    batch.seconds[status] = Math.floor(this.#dependencies.clock.now() / 1_000);
    const { entry } = batch;
    if (status !== 'created' && (entry.status !== 'cancelling' || OVER.includes(status)))
      entry.status = status;
  }

  async #work(batch: Batch): Promise<void> {
    const { judge, shelf } = this.#dependencies;
    const { headers: dialect, models, batches: options } = judge.settings;
    const { entry } = batch;
    const check = new BatchFileCheck({ endpoint: entry.endpoint, dialect, models });
    for await (const line of shelf.lines(batch.input)) check.add(line);
    check.finish(batch.input.bytes);
    await this.#reach(batch, VALIDATED);
    entry.model = check.model;
    batch.errors = check.errors;
    if (
      check.errors.length === 0 &&
      options.queueFullAt === 'validation' &&
      this.#overflows(batch.input, batch)
    ) {
      const message = this.#queueFull(check.model ?? 'the model');
      batch.errors = [{ code: 'token_limit_exceeded', message, param: null, line: null }];
    }
    if (batch.errors.length > 0) {
      this.#enter(batch, 'failed');
      return;
    }
    entry.total = check.lines;
    this.#enter(batch, 'in_progress');
    await this.#run(batch, options.faults);
  }

  async #run(batch: Batch, faults: readonly BatchFault[]): Promise<void> {
    const { judge, shelf, clock } = this.#dependencies;
    const { entry } = batch;
    const createdSeconds = Math.floor(clock.now() / 1_000);
    const file = async (kind: string): Promise<LineFile> =>
      new LineFile(shelf, await shelf.create(`${batch.id}_${kind}.jsonl`, 'batch_output', createdSeconds));
    const output = await file('output');
    const errors = await file('error');
    let position = 0;
    let expired = false;
    for await (const text of shelf.lines(batch.input)) {
      if (position % LINES_AT_A_TIME === 0) await nextTurn();
      await this.#reach(batch, VALIDATED + ((WORKED_OFF - VALIDATED) * position) / entry.total);
      if (this.#closed) return;
      position += 1;
      const { customId, body: requestBody } = readBatchLine(text);
      const id = `batch_req_simulated_${batch.id}_${position}`;
      const head = `{"id":"${id}","custom_id":${JSON.stringify(customId)}`;
      const unrun = (code: string, message: string): Promise<void> =>
        errors.add(`${head},"response":null,"error":${JSON.stringify({ code, message })}}`);
      if (entry.status === 'cancelling') {
        await unrun('batch_cancelled', 'The batch was cancelled before this request was run.');
        continue;
      }
      expired ||= faults.includes('expire') && position > entry.total / 2;
      const verdict: LineVerdict = expired
        ? { isRun: false }
        : judge.judgeLine({ endpoint: batch.served, requestBody, key: batch.key, port: batch.port });
      if (!verdict.isRun) {
        await unrun('batch_expired', 'This request could not be run before the completion window was over.');
        continue;
      }
      const isGood = verdict.status === 200;
      if (isGood) entry.completed += 1;
      else entry.failed += 1;
      const response = `{"status_code":${verdict.status},"request_id":"req_${id}","body":${verdict.bodyJson}}`;
      const line = `${head},"response":${response},"error":null}`;
      const { behaviour } = verdict;
      if (behaviour === 'line-missing') continue;
      const file = isGood ? output : errors;
      await file.add(behaviour === 'line-malformed' ? line.slice(0, Math.floor(line.length / 2)) : line);
      if (behaviour === 'line-doubled') await file.add(line);
    }
    this.#enter(batch, 'finalizing');
    await this.#reach(batch, 1);
    await this.#publish(batch, { output, errors }, faults);
    const isExpired = entry.completed + entry.failed < entry.total;
    this.#enter(batch, entry.status === 'cancelling' ? 'cancelled' : isExpired ? 'expired' : 'completed');
  }

  async #publish(
    batch: Batch,
    { output, errors }: { readonly output: LineFile; readonly errors: LineFile },
    faults: readonly BatchFault[],
  ): Promise<void> {
    const { shelf, judge } = this.#dependencies;
    await output.flush(faults.includes('shuffle'));
    await errors.flush(false);
    // Azure names an error file whatever is in it.
    const alwaysNamed = judge.settings.headers === 'azure' ? [errors.file] : [];
    for (const { file } of [output, errors]) {
      if (file.bytes > 0 || alwaysNamed.includes(file)) shelf.put(file);
      else await shelf.remove(file);
    }
    const idOf = ({ file }: LineFile, fault: BatchFault): string | null =>
      shelf.get(file.id) === undefined || faults.includes(fault) ? null : file.id;
    batch.outputFileId = idOf(output, 'lose-output');
    batch.errorFileId = idOf(errors, 'lose-errors');
  }

  /** Waits for a share of the batch's time to be over; no longer once it is in a hurry. */
  async #reach(batch: Batch, share: number): Promise<void> {
    const { clock, judge } = this.#dependencies;
    const leftMs = batch.startMs + judge.settings.batches.durationMs * share - clock.monotonicMs();
    if (leftMs > (share === 1 ? 0 : SHORT_WAIT_MS)) await clock.sleep(leftMs, batch.hurry.signal);
  }

  /** @param itself a batch of that file that is among the unfinished already */
  #overflows(input: ShelvedFile, itself?: Batch): boolean {
    let bytes = input.bytes;
    for (const batch of this.#batches.values()) {
      if (batch !== itself && !OVER.includes(batch.entry.status)) bytes += batch.input.bytes;
    }
    return bytes / BYTES_PER_TOKEN > this.#dependencies.judge.settings.batches.queueTokens;
  }

  #queueFull(model: string): string {
    const { queueTokens } = this.#dependencies.judge.settings.batches;
    return `Enqueued token limit reached for ${model} in organization org-simulated. Limit: ${queueTokens} enqueued tokens. Please try again once some in_progress batches have been completed.`;
  }
}

/** A batch's file while it is written. */
class LineFile {
  readonly #shelf: Shelf;
  readonly file: ShelvedFile;
  #lines: string[] = [];
  #characters = 0;

  constructor(shelf: Shelf, file: ShelvedFile) {
    this.#shelf = shelf;
    this.file = file;
  }

  async add(line: string): Promise<void> {
    this.#lines.push(line);
    this.#characters += line.length;
    if (this.#characters >= WRITTEN_CHARACTERS) await this.flush(false);
  }

  /** @param shuffled puts what is not yet written in another order */
  async flush(shuffled: boolean): Promise<void> {
    if (this.#lines.length === 0) return;
    const lines = shuffled ? inAnotherOrder(this.#lines) : this.#lines;
    this.#lines = [];
    this.#characters = 0;
    await this.#shelf.append(this.file, Buffer.from(`${lines.join('\n')}\n`));
  }
}

/** The later half turned round, then the earlier one: no line keeps its neighbours' order. */
function inAnotherOrder(lines: readonly string[]): string[] {
  const middle = Math.floor(lines.length / 2);
  return [...lines.slice(middle).reverse(), ...lines.slice(0, middle)];
}

function isMetadata(value: Json): value is Record<string, string> | null {
  if (value === null) return true;
  if (!isJsonObject(value) || Object.keys(value).length > MOST_METADATA) return false;
  return Object.entries(value).every(
    ([name, text]) =>
      name.length <= LONGEST_METADATA_NAME &&
      typeof text === 'string' &&
      text.length <= LONGEST_METADATA_VALUE,
  );
}
