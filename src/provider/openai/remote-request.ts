/** Requests to the ports of remote work, which an object answers, or nothing. */
import { isJsonObject, type JsonObject, parseForeignJson } from '../../core/json.js';
import type { ProviderAborted, ProviderRejection, SendOptions } from '../provider.js';
import type { RemoteReply } from '../remote-batches.js';
import { errorIn, rejectUnreadable } from './answer.js';
import { buildFailure, classifyErrorUnderOk, type FailureContext } from './classify.js';
import type { ReceivedResponse } from './response.js';
import type { SendWireRequest, WireRequest } from './wire.js';

type RemoteAnswer<Value> = Exclude<RemoteReply<Value>, { readonly aborted: true }>;

/**
 * Takes from the object that answers a request what is needed.
 * @param read null: it cannot be used
 * @param lack what an answer that cannot be used does, for the message
 */
export async function askRemote<Value>(
  exchange: SendWireRequest,
  wire: WireRequest,
  options: SendOptions,
  read: (body: JsonObject, context: FailureContext, received: ReceivedResponse) => Value | null,
  lack = 'lacks what it is asked for',
): Promise<RemoteReply<Value>> {
  const reply = await exchange(wire, options, (received, context): RemoteAnswer<Value> => {
    const body = readObject(received, context);
    if (!body.ok) return body;
    const value = read(body.value, context, received);
    if (value !== null) return { ok: true, value };
    const message = `The server's answer ${lack} (${context.method} ${context.url})`;
    return { ok: false, failure: buildFailure('bad_output', message, context, received) };
  });
  return replyOf(reply);
}

/** A request of whose answer nothing is needed. */
export async function tellRemote(
  exchange: SendWireRequest,
  wire: WireRequest,
  options: SendOptions,
): Promise<RemoteReply<null>> {
  return replyOf(await exchange(wire, options, () => ({ ok: true as const, value: null })));
}

function replyOf<Value>(reply: RemoteReply<Value> | ProviderRejection | ProviderAborted): RemoteReply<Value> {
  if (reply.ok) return reply;
  return 'aborted' in reply ? { ok: false, aborted: true } : { ok: false, failure: reply.failure };
}

/** The body of a response with status 2xx; gateways answer with pages and errors under it. */
export function readObject(received: ReceivedResponse, context: FailureContext): RemoteAnswer<JsonObject> {
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
    const message = 'The answer is JSON, but no object';
    return { ok: false, failure: buildFailure('bad_output', message, context, received) };
  } catch (error) {
    return { ok: false, failure: rejectUnreadable(received, error, context).failure };
  }
}
