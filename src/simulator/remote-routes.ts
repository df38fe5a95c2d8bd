/**
 * Requests about files, batches and background responses, from HTTP to where they lie and back. They pass no limit and are no calls;
 * what they can be made to meet is an option of its own.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Clock } from '../core/clock.js';
import { type JsonObject, parseJsonObject } from '../core/json.js';
import { BackgroundResponses } from './background-responses.js';
import { type Batch, Batches } from './batches.js';
import type { Books } from './books.js';
import type { Endpoint } from './endpoint.js';
import type { Judge } from './judge.js';
import { boundaryOf, readForm } from './multipart.js';
import { REMOTE_ROUTES, type RemoteRoute, ROUTE_NAMES, type RouteFault } from './options.js';
import { invalidRequest, isRefusal, notAnObject, type Refusal, refusal, urlNotFound } from './refusal.js';
import { deliver, type Reply, sendJson } from './reply.js';
import { Shelf, type ShelvedFile } from './shelf.js';

/** What a request comes to: JSON, a file's content, or a refusal. */
type Outcome = { readonly body: JsonObject } | { readonly content: ShelvedFile } | Refusal;

interface Remote {
  readonly route: RemoteRoute;
  /** Of the file, batch or response; empty for lists and creations. */
  readonly id: string;
  readonly query: URLSearchParams;
  readonly request: IncomingMessage;
  readonly key: string | null;
}

const ADDRESS = /^\/v1\/(files|batches|responses)(?:\/([^/]+)(?:\/(content|cancel))?)?$/;
const MOST_FILE_BYTES = 512 * 2 ** 20;
const LONGEST_FIELD_BYTES = 1_000;
const LARGEST_PAGE = 100;
const USUAL_PAGE = 20;

export class RemoteRoutes {
  readonly #judge: Judge;
  readonly #books: Books;
  readonly #clock: Clock;
  readonly #shelf = new Shelf();
  readonly #batches: Batches;
  readonly responses: BackgroundResponses;
  /** Requests that each fault of the options has looked at. */
  readonly #looks = new WeakMap<RouteFault, number>();

  constructor(judge: Judge, books: Books, clock: Clock, endpoints: readonly Endpoint[]) {
    this.#judge = judge;
    this.#books = books;
    this.#clock = clock;
    this.responses = new BackgroundResponses(judge, books, clock);
    this.#batches = new Batches({ judge, books, clock, shelf: this.#shelf, endpoints });
  }

  /**
   * @param key the bearer key that was sent
   * @returns false, having done nothing, where the address is another's
   */
  handle(method: string, request: IncomingMessage, response: ServerResponse, key: string | null): boolean {
    const url = new URL(request.url ?? '/', 'http://simulator');
    const [, noun, id, verb] = ADDRESS.exec(url.pathname) ?? [];
    if (noun === undefined) return false;
    const address = [method, noun, id === undefined ? '' : 'ID', verb].filter(Boolean).join(' ');
    const route = ROUTE_NAMES.find((name) => REMOTE_ROUTES[name] === address);
    const reason = route === undefined ? urlNotFound(method, url.pathname) : this.#judge.refusalOfKey(key);
    if (route === undefined || reason !== null) {
      request.resume();
      this.#turnAway(reason as Refusal, response);
      return true;
    }
    const remote = { route, id: id ?? '', query: url.searchParams, request, key };
    this.#serve(remote, response).catch((error: unknown) => {
      // The caller left in the middle.
      if (response.destroyed || request.destroyed) return;
      const message = `The simulator failed: ${String(error)}`;
      this.#books.noteDefect(message);
      const defect = refusal(500, message, 'server_error', 'simulator_defect');
      if (response.headersSent) response.destroy();
      else this.#turnAway(defect, response);
    });
    return true;
  }

  #turnAway(reason: Refusal, response: ServerResponse): void {
    deliver(this.#judge.turnAway(reason).reply, {}, 0, response, this.#clock);
  }

  async close(): Promise<void> {
    this.#batches.close();
    this.responses.close();
    await this.#shelf.close();
  }

  async #serve(remote: Remote, response: ServerResponse): Promise<void> {
    const fault = this.#faultOf(remote.route);
    if (fault === 'reset') {
      // Of an upload, some of it is here by the time that there is data.
      if (remote.route === 'upload')
        remote.request.once('data', () => remote.request.socket.resetAndDestroy());
      else remote.request.socket.resetAndDestroy();
      return;
    }
    if (fault !== null && fault !== 'drop' && fault !== 'cut') {
      remote.request.resume();
      if (fault === 'hang') return;
      const message = 'The simulator was asked to refuse.';
      this.#turnAway(refusal(Number(fault), message, 'server_error', null), response);
      return;
    }
    const outcome = await this.#do(remote);
    if (fault === 'drop') {
      remote.request.socket.resetAndDestroy();
      return;
    }
    if ('content' in outcome) {
      await this.#sendContent(outcome.content, response, fault === 'cut');
      return;
    }
    const reply: Reply = isRefusal(outcome)
      ? this.#judge.turnAway(outcome).reply
      : sendJson(200, JSON.stringify(outcome.body));
    const broken: Reply = { type: 'cut', body: 'body' in reply ? reply.body : '' };
    deliver(fault === 'cut' ? broken : reply, {}, 0, response, this.#clock);
  }

  #faultOf(route: RemoteRoute): RouteFault['fault'] | null {
    for (const one of this.#judge.settings.routeFaults) {
      if (one.route !== route) continue;
      const looks = this.#looks.get(one) ?? 0;
      this.#looks.set(one, looks + 1);
      const after = one.after ?? 0;
      if (looks >= after && looks < after + (one.times ?? 1)) return one.fault;
    }
    return null;
  }

  async #do(remote: Remote): Promise<Outcome> {
    const { route, id, query, request, key } = remote;
    switch (route) {
      case 'upload':
        return this.#upload(request);
      case 'files':
        return page(this.#shelf.list(), query, describeFile);
      case 'file':
        return this.#ofFile(id, (file) => ({ body: describeFile(file) }));
      case 'content':
        return this.#ofFile(id, (file) => ({ content: file }));
      case 'delete':
        return this.#ofFile(id, async (file) => {
          await this.#shelf.remove(file);
          this.#books.remote.filesDeleted += 1;
          return { body: { id, object: 'file', deleted: true } };
        });
      case 'create': {
        const asked = await readObject(request);
        if (asked === null) return notAnObject();
        const batch = this.#batches.create(asked, key, request.socket.localPort ?? 0);
        return isRefusal(batch) ? batch : { body: this.#batches.describe(batch) };
      }
      case 'batches':
        return page(this.#batches.list(), query, (batch) => this.#batches.describe(batch));
      case 'batch':
        return this.#ofBatch(id);
      case 'cancel':
        request.resume();
        return this.#ofBatch(id, (batch) => this.#batches.cancel(batch));
      case 'response':
        return this.responses.retrieve(id);
      case 'cancel-response':
        request.resume();
        return this.responses.cancel(id);
      case 'delete-response':
        return this.responses.remove(id);
    }
  }

  async #upload(request: IncomingMessage): Promise<Outcome> {
    const boundary = boundaryOf(request.headers['content-type']);
    if (boundary === null) return invalidRequest('Expected multipart/form-data.', null, null);
    const fields = new Map<string, string>();
    const createdSeconds = Math.floor(this.#clock.now() / 1_000);
    let file: ShelvedFile | null = null;
    const isWhole = await readForm(request, boundary, async ({ name, fileName }, data) => {
      if (fileName !== null && name === 'file') {
        file ??= await this.#shelf.create(fileName, '', createdSeconds);
        if (file.bytes <= MOST_FILE_BYTES) await this.#shelf.append(file, data);
      } else fields.set(name, `${fields.get(name) ?? ''}${data}`.slice(0, LONGEST_FIELD_BYTES));
    });
    if (!isWhole) return invalidRequest('The form breaks off.', null, null);
    const uploaded = file as ShelvedFile | null;
    if (uploaded === null) return invalidRequest("'file' is a required property", 'file', null);
    const purpose = fields.get('purpose');
    if (purpose === undefined) return invalidRequest("'purpose' is a required property", 'purpose', null);
    if (uploaded.bytes > MOST_FILE_BYTES) {
      return refusal(413, 'The file is too large.', 'invalid_request_error', 'file_too_large');
    }
    const shelved = { ...uploaded, purpose };
    this.#shelf.put(shelved);
    this.#books.remote.filesUploaded += 1;
    this.#books.remote.bytesUploaded += shelved.bytes;
    return { body: describeFile(shelved) };
  }

  /** @param isCut ends in the middle, with the connection */
  async #sendContent(file: ShelvedFile, response: ServerResponse, isCut: boolean): Promise<void> {
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': file.bytes });
    const pieces = this.#shelf.chunks(file, isCut ? Math.floor(file.bytes / 2) : file.bytes);
    await pipeline(pieces, response, { end: false });
    if (isCut) {
      // Closed only once the half is with the kernel.
      response.write('', () => response.socket?.destroy());
      return;
    }
    response.end();
    this.#books.remote.filesFetched += 1;
  }

  async #ofFile(id: string, use: (file: ShelvedFile) => Outcome | Promise<Outcome>): Promise<Outcome> {
    const file = this.#shelf.get(id);
    return file === undefined
      ? refusal(404, `No such File object: ${id}`, 'invalid_request_error', null, 'id')
      : use(file);
  }

  #ofBatch(id: string, use: (batch: Batch) => Refusal | null = () => null): Outcome {
    const batch = this.#batches.get(id);
    if (batch === undefined)
      return refusal(404, `No batch found with id '${id}'.`, 'invalid_request_error', null);
    return use(batch) ?? { body: this.#batches.describe(batch) };
  }
}

function describeFile({ id, name, purpose, bytes, createdSeconds }: ShelvedFile): JsonObject {
  const told = { bytes, created_at: createdSeconds, filename: name, purpose };
  return { id, object: 'file', ...told, status: 'processed' };
}

/** One page of a list. @param all newest first */
function page<Item extends { readonly id: string }>(
  all: readonly Item[],
  query: URLSearchParams,
  describe: (item: Item) => JsonObject,
): Outcome {
  const asked = Number(query.get('limit') ?? USUAL_PAGE);
  if (!Number.isInteger(asked) || asked < 1 || asked > LARGEST_PAGE) {
    return invalidRequest(`The limit must be from 1 to ${LARGEST_PAGE}.`, 'limit', 'invalid_value');
  }
  const after = query.get('after');
  const start = after === null ? 0 : all.findIndex(({ id }) => id === after) + 1;
  if (after !== null && start === 0)
    return invalidRequest(`Unknown cursor: ${after}.`, 'after', 'invalid_value');
  const items = all.slice(start, start + asked);
  return {
    body: {
      object: 'list',
      data: items.map(describe),
      first_id: items[0]?.id ?? null,
      last_id: items.at(-1)?.id ?? null,
      has_more: start + items.length < all.length,
    },
  };
}

async function readObject(request: IncomingMessage): Promise<JsonObject | null> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8') as AsyncIterable<string>) {
    if (text.length < 2 ** 20) text += chunk;
  }
  return parseJsonObject(text);
}
