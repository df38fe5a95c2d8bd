/**
 * The port to a provider's Batch API: requests are handed in as a file, worked off within a day at half the price, and
 * fetched as files. Each method is one HTTP request (a look through a list: one a page) that is never repeated here; what
 * a server or a network can do is a value. Whoever calls decides when, and what a failure means.
 */
import type { EndpointName } from '../core/endpoint-name.js';
import type { ProviderFailure } from '../core/failure.js';
import type { Provider, ProviderReply, ProviderRequest, SendOptions } from './provider.js';

export type RemoteReply<Value> =
  | { readonly ok: true; readonly value: Value }
  /** `failure.isUnsent` tells that the server has seen nothing of it; otherwise it may have done what it was asked. */
  | { readonly ok: false; readonly failure: ProviderFailure }
  | { readonly ok: false; readonly aborted: true };

/** States of OpenAI's API reference, in lower case whatever the server writes. */
export const REMOTE_BATCH_STATES = [
  ...(['validating', 'failed', 'in_progress', 'finalizing'] as const),
  ...(['completed', 'expired', 'cancelling', 'cancelled'] as const),
] as const;

/** `unknown` for any other word. */
export type RemoteBatchState = (typeof REMOTE_BATCH_STATES)[number] | 'unknown';

export interface NewRemoteBatch {
  readonly inputFileId: string;
  /** Of all its lines. */
  readonly endpoint: EndpointName;
  /** Kept by the server, 16 pairs at most: what the batch is found by when nobody heard the answer to its creation. */
  readonly metadata: Readonly<Record<string, string>>;
}

export interface RemoteBatch {
  readonly id: string;
  readonly state: RemoteBatchState;
  readonly createdAtMs: number | null;
  readonly metadata: Readonly<Record<string, string>>;
  /** Either may be missing in any state: both are fetched wherever they are named. */
  readonly outputFileId: string | null;
  readonly errorFileId: string | null;
  /** Null where the server tells none. */
  readonly counts: { readonly total: number; readonly completed: number; readonly failed: number } | null;
  /** Why the batch as a whole failed, classified as an answer to a call would be; null where it did not, or nobody says. */
  readonly failure: ProviderFailure | null;
  /** `token_limit_exceeded`: the queue is full, the same file may be handed in again later. */
  readonly isQueueFull: boolean;
}

/** A line of a file as it came. */
export interface FileLine {
  readonly text: string;
  /** False: bytes of it were none, and are replaced in the text. */
  readonly isUtf8: boolean;
}

/** What one line of an output or error file says. */
export type RemoteLine =
  | { readonly customId: string; readonly reply: ProviderReply }
  /** Expired or cancelled before its turn: it was not run and costs nothing. */
  | { readonly customId: string; readonly unrun: string }
  /** No line that can be read, or one that belongs to nobody. */
  | { readonly malformed: string };

export interface RemoteBatches {
  /**
   * Sends a file from disk, streamed, with its length told. Its time runs out where nothing has moved for as long. The file
   * must not change meanwhile.
   * @returns its id
   * @throws LlmBatchError BATCH_FILE where it cannot be read
   */
  upload(path: string, options: SendOptions): Promise<RemoteReply<string>>;
  create(batch: NewRemoteBatch, options: SendOptions): Promise<RemoteReply<RemoteBatch>>;
  retrieve(id: string, options: SendOptions): Promise<RemoteReply<RemoteBatch>>;
  /**
   * Looks through the server's list, newest first, for the batch that has all of `metadata`.
   * @param createdSinceMs how far back; batches without a time are looked at too
   */
  find(
    metadata: Readonly<Record<string, string>>,
    createdSinceMs: number,
    options: SendOptions,
  ): Promise<RemoteReply<RemoteBatch | null>>;
  cancel(id: string, options: SendOptions): Promise<RemoteReply<RemoteBatch>>;
  /**
   * Streams a file to disk, whole or not at all (written beside, synced, renamed). Its time runs out as an upload's does.
   * @throws LlmBatchError BATCH_FILE where it cannot be written
   */
  download(fileId: string, path: string, options: SendOptions): Promise<RemoteReply<null>>;
  /** Removes a file at the server. */
  deleteFile(fileId: string, options: SendOptions): Promise<RemoteReply<null>>;
  /** Pure. @param requestOf the request that was handed in under a custom id; null: none was */
  readLine(line: FileLine, requestOf: (customId: string) => ProviderRequest | null): RemoteLine;
}

/** A provider that takes batches too. */
export interface RemoteProvider extends Provider {
  readonly remoteBatches: RemoteBatches;
}
