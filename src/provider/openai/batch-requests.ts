/** The requests of the Batch API (`/files`, `/batches`) behind the port to remote batches. */
import { isJsonObject, type JsonObject, parseForeignJson } from '../../core/json.js';
import { batchUrlOf } from '../../endpoints/endpoints.js';
import type { ProviderAborted, ProviderRejection, SendOptions } from '../provider.js';
import type { RemoteBatch, RemoteBatches, RemoteReply } from '../remote-batches.js';
import { errorIn, rejectUnreadable } from './answer.js';
import { readBatchLine } from './batch-line.js';
import { readBatch, readId } from './batch-object.js';
import { buildFailure, classifyErrorUnderOk, type FailureContext } from './classify.js';
import { FileSink } from './file-sink.js';
import { FileUpload } from './file-upload.js';
import type { ReceivedResponse } from './response.js';
import type { SendWireRequest, WireRequest } from './wire.js';

/** The only one there is, as OpenAI's API reference has it; Groq's longer ones are not asked for. */
const COMPLETION_WINDOW = '24h';
/** The most that OpenAI gives at once. */
const BATCHES_A_PAGE = 100;
/** More than any account has in a day (2,000 creations an hour, OpenAI's guide); a list without an end is none. */
const MOST_PAGES = 1_000;
/** Servers tell whole seconds. */
const SECOND_MS = 1_000;

/** @param contextOf a failure that is of no single request, or of a line */
export function createRemoteBatches(
  exchange: SendWireRequest,
  contextOf: () => FailureContext,
): RemoteBatches {
  /** A request that is answered by an object, of which `read` takes what is needed; null: it cannot be used. */
  const ask = async <Value>(
    request: WireRequest,
    options: SendOptions,
    read: (body: JsonObject, context: FailureContext) => Value | null,
  ): Promise<RemoteReply<Value>> =>
    replyOf(
      await exchange(request, options, (received, context): RemoteReply<Value> => {
        const body = readObject(received, context);
        if (!body.ok) return body;
        const value = read(body.value, context);
        if (value !== null) return { ok: true, value };
        const message = `The server's answer lacks what it is asked for (${context.method} ${context.url})`;
        return { ok: false, failure: buildFailure('bad_output', message, context, received) };
      }),
    );

  const ofBatch = (
    id: string,
    options: SendOptions,
    verb: 'cancel' | null,
  ): Promise<RemoteReply<RemoteBatch>> => {
    const path = `/batches/${encodeURIComponent(id)}`;
    return verb === null
      ? ask({ method: 'get', path }, options, readBatch)
      : ask({ method: 'post', path: `${path}/${verb}` }, options, readBatch);
  };

  return {
    async upload(path, options) {
      const upload = await FileUpload.open(path);
      const reply = await ask({ method: 'post', path: '/files', upload }, options, readId);
      upload.throwFailure();
      return reply;
    },

    create({ inputFileId, endpoint, metadata }, options) {
      const bodyJson = JSON.stringify({
        input_file_id: inputFileId,
        endpoint: batchUrlOf(endpoint),
        completion_window: COMPLETION_WINDOW,
        metadata,
      });
      return ask({ method: 'post', path: '/batches', bodyJson }, options, readBatch);
    },

    retrieve: (id, options) => ofBatch(id, options, null),
    cancel: (id, options) => ofBatch(id, options, 'cancel'),

    async find(metadata, createdSinceMs, options) {
      const seen = new Set<string>();
      let cursor = '';
      for (let pages = 0; pages < MOST_PAGES; pages += 1) {
        const path = `/batches?limit=${BATCHES_A_PAGE}${cursor === '' ? '' : `&after=${encodeURIComponent(cursor)}`}`;
        const reply = await ask({ method: 'get', path }, options, readPage);
        if (!reply.ok) return reply;
        const { batches, hasMore } = reply.value;
        const found = batches.find((batch) => hasAll(batch, metadata));
        if (found !== undefined) return { ok: true, value: found };
        const fresh = batches.filter(({ id }) => !seen.has(id));
        for (const { id } of fresh) seen.add(id);
        cursor = batches.at(-1)?.id ?? '';
        // A server that knows no cursor sends the same page again.
        if (!hasMore || fresh.length === 0 || batches.every((batch) => isBefore(batch, createdSinceMs))) {
          return { ok: true, value: null };
        }
      }
      const message = `The server's list of batches has no end after ${MOST_PAGES} pages`;
      return { ok: false, failure: buildFailure('bad_output', message, contextOf()) };
    },

    async download(fileId, path, options) {
      const sink = await FileSink.open(path);
      try {
        const request: WireRequest = {
          method: 'get',
          path: `/files/${encodeURIComponent(fileId)}/content`,
          sink: sink.stream,
        };
        const reply: RemoteReply<null> = replyOf(
          await exchange(request, options, () => ({ ok: true as const, value: null })),
        );
        sink.throwFailure();
        if (reply.ok) await sink.commit();
        return reply;
      } finally {
        await sink.discard();
      }
    },

    async deleteFile(fileId, options) {
      const path = `/files/${encodeURIComponent(fileId)}`;
      return replyOf(
        await exchange({ method: 'delete', path }, options, () => ({ ok: true as const, value: null })),
      );
    },

    readLine: (line, requestOf) => readBatchLine(line, requestOf, contextOf()),
  };
}

export function replyOf<Value>(
  reply: RemoteReply<Value> | ProviderRejection | ProviderAborted,
): RemoteReply<Value> {
  if (reply.ok) return reply;
  return 'aborted' in reply ? { ok: false, aborted: true } : { ok: false, failure: reply.failure };
}

/** The body of a response with status 2xx; gateways answer with pages and errors under it. */
export function readObject(
  received: ReceivedResponse,
  context: FailureContext,
):
  | { readonly ok: true; readonly value: JsonObject }
  | { readonly ok: false; readonly failure: ProviderRejection['failure'] } {
  const { status, headers, content } = received;
  try {
    const parsed = parseForeignJson(content);
    const body = Array.isArray(parsed) ? { data: parsed } : parsed;
    // Batches and responses name errors of their own: each is one where it has an id.
    const error = isJsonObject(body) && 'id' in body ? undefined : errorIn(parsed);
    if (error !== undefined) {
      return { ok: false, failure: classifyErrorUnderOk({ status, headers, error }, context) };
    }
    if (isJsonObject(body)) return { ok: true, value: body };
    return {
      ok: false,
      failure: buildFailure('bad_output', 'The answer is JSON, but no object', context, received),
    };
  } catch (error) {
    return { ok: false, failure: rejectUnreadable(received, error, context).failure };
  }
}

interface BatchPage {
  readonly batches: readonly RemoteBatch[];
  readonly hasMore: boolean;
}

/** OpenAI wraps the list in `data`, Together sends it bare. What cannot be read is none of ours. */
function readPage({ data, has_more: hasMore }: JsonObject, context: FailureContext): BatchPage | null {
  if (!Array.isArray(data)) return null;
  const batches = data
    .map((item) => (isJsonObject(item) ? readBatch(item, context) : null))
    .filter((batch) => batch !== null);
  return { batches, hasMore: typeof hasMore === 'boolean' ? hasMore : data.length >= BATCHES_A_PAGE };
}

function hasAll(batch: RemoteBatch, metadata: Readonly<Record<string, string>>): boolean {
  return Object.entries(metadata).every(([name, value]) => batch.metadata[name] === value);
}

function isBefore({ createdAtMs }: RemoteBatch, ms: number): boolean {
  return createdAtMs !== null && createdAtMs + SECOND_MS < ms;
}
