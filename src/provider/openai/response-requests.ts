/** The requests about background responses (`/responses/ID`) behind the port to them. */
import type { ProviderFailure } from '../../core/failure.js';
import type { JsonObject } from '../../core/json.js';
import { ENDPOINTS } from '../../endpoints/endpoints.js';
import type { ProviderRequest, SendOptions } from '../provider.js';
import type { RemoteReply } from '../remote-batches.js';
import type { OpenResponse, RemoteResponses, ResponseReply } from '../remote-responses.js';
import { readAnswer } from './answer.js';
import { readId } from './batch-object.js';
import type { FailureContext } from './classify.js';
import { readRateLimitHints } from './headers.js';
import { askRemote, readObject, tellRemote } from './remote-request.js';
import type { ReceivedResponse } from './response.js';
import type { SendWireRequest, WireRequest } from './wire.js';

/** As OpenAI's API reference has them. */
const OPEN_STATES: readonly string[] = ['queued', 'in_progress'];
const PARAMETER = /\bbackground\b/i;
/** In a server's own words, of which no two have the same. */
const REFUSED_PARAMETER =
  /\b(?:unknown|unsupported|unrecogni[sz]ed|unexpected|extra|invalid|not (?:supported?|allowed|permitted|available|enabled))\b/i;

export function createRemoteResponses(exchange: SendWireRequest): RemoteResponses {
  // Whatever a gateway says in between is nothing that the response has come to.
  const ask = (
    wire: WireRequest,
    request: ProviderRequest,
    options: SendOptions,
  ): Promise<RemoteReply<ResponseReply>> =>
    askRemote<ResponseReply>(
      exchange,
      wire,
      options,
      (body, context, received) =>
        readId(body) === null
          ? null
          : (readOpen(body, received, context) ?? readAnswer(request, received, context)),
      'is no response',
    );

  return {
    async create(request, options) {
      const { path, inBackground } = ENDPOINTS[request.endpoint];
      const bodyJson = inBackground === null ? request.bodyJson : inBackground(request.bodyJson);
      const reply = await exchange(
        { method: 'post', path, bodyJson },
        options,
        (received, context): ResponseReply => {
          const read = readObject(received, context);
          const open = read.ok ? readOpen(read.value, received, context) : null;
          return open ?? readAnswer(request, received, context);
        },
      );
      return reply.ok || 'aborted' in reply ? reply : { ...reply, failure: told(reply.failure) };
    },
    retrieve: (id, request, options) => ask({ method: 'get', path: pathOf(id) }, request, options),
    cancel: (id, request, options) => ask({ method: 'post', path: `${pathOf(id)}/cancel` }, request, options),
    remove: (id, options) => tellRemote(exchange, { method: 'delete', path: pathOf(id) }, options),
  };
}

function pathOf(id: string): string {
  return `${ENDPOINTS.responses.path}/${encodeURIComponent(id)}`;
}

/** @returns null for one that has ended, and for what is no response */
function readOpen(
  body: JsonObject,
  { headers }: ReceivedResponse,
  { nowMs }: FailureContext,
): OpenResponse | null {
  const id = readId(body);
  if (id === null) return null;
  const state = String(body['status']).toLowerCase();
  if (!OPEN_STATES.includes(state)) return null;
  return { ok: true, isOpen: true, id, state, usage: null, hints: readRateLimitHints(headers, nowMs) };
}

/** A server that does not know the parameter refuses every document: that is said once, of the server. */
function told(failure: ProviderFailure): ProviderFailure {
  const { kind, message } = failure;
  if (kind !== 'invalid_request' || !PARAMETER.test(message) || !REFUSED_PARAMETER.test(message))
    return failure;
  return {
    ...failure,
    kind: 'not_found',
    code: 'BACKGROUND_UNSUPPORTED',
    message: `The server makes no responses in the background: ${message}`,
  };
}
