/** The requests of the Batch API (`/files`, `/batches`) behind the port to remote batches. */
import { isJsonObject, type JsonObject } from '../../core/json.js';
import { batchUrlOf } from '../../endpoints/endpoints.js';
import type { SendOptions } from '../provider.js';
import type { RemoteBatch, RemoteBatches, RemoteReply } from '../remote-batches.js';
import { readBatchLine } from './batch-line.js';
import { readBatch, readId } from './batch-object.js';
import { buildFailure, type FailureContext } from './classify.js';
import { FileSink } from './file-sink.js';
import { FileUpload } from './file-upload.js';
import { askRemote, tellRemote } from './remote-request.js';
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
  const ask = <Value>(
    wire: WireRequest,
    options: SendOptions,
    read: (body: JsonObject, context: FailureContext) => Value | null,
  ): Promise<RemoteReply<Value>> => askRemote(exchange, wire, options, read);

  const pathOf = (id: string): string => `/batches/${encodeURIComponent(id)}`;

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

    retrieve: (id, options) => ask({ method: 'get', path: pathOf(id) }, options, readBatch),
    cancel: (id, options) => ask({ method: 'post', path: `${pathOf(id)}/cancel` }, options, readBatch),

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
        const path = `/files/${encodeURIComponent(fileId)}/content`;
        const reply = await tellRemote(exchange, { method: 'get', path, sink: sink.stream }, options);
        sink.throwFailure();
        if (reply.ok) await sink.commit();
        return reply;
      } finally {
        await sink.discard();
      }
    },

    deleteFile(fileId, options) {
      const path = `/files/${encodeURIComponent(fileId)}`;
      return tellRemote(exchange, { method: 'delete', path }, options);
    },

    readLine: (line, requestOf) => readBatchLine(line, requestOf, contextOf()),
  };
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
