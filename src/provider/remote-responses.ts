/**
 * The port to responses that a server works on in the background: created by a call, asked for by their id until they have
 * ended, and kept there until they are removed. Each method is one HTTP request that is never repeated here.
 */
import type { RateLimitHints } from '../core/limits.js';
import type { ProviderReply, ProviderRequest, SendOptions } from './provider.js';
import type { RemoteReply } from './remote-batches.js';

/** The server has taken it and has not ended it yet. */
export interface OpenResponse {
  readonly ok: true;
  readonly isOpen: true;
  readonly id: string;
  /** In the server's word, lower case: `queued` or `in_progress`. */
  readonly state: string;
  readonly usage: null;
  readonly hints: RateLimitHints;
}

/** How a response stands. One that has ended is read as the answer to a call is. */
export type ResponseReply = ProviderReply | OpenResponse;

export interface RemoteResponses {
  /** Asks for a response in the background. A server that knows nothing of that may answer at once. */
  create(request: ProviderRequest, options: SendOptions): Promise<ResponseReply>;
  /** @param request that it was created by */
  retrieve(id: string, request: ProviderRequest, options: SendOptions): Promise<RemoteReply<ResponseReply>>;
  /** One that has ended stays as it is. @param request as above */
  cancel(id: string, request: ProviderRequest, options: SendOptions): Promise<RemoteReply<ResponseReply>>;
  /** Removes it at the server. */
  remove(id: string, options: SendOptions): Promise<RemoteReply<null>>;
}

/** A provider that makes responses in the background too. */
export interface BackgroundProvider {
  readonly remoteResponses: RemoteResponses;
}
