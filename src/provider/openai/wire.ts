/** One request as the parts of this provider hand it to the one function that sends; see client.ts. */
import type { Readable, Writable } from 'node:stream';
import type { ProviderAborted, ProviderRejection, SendOptions } from '../provider.js';
import type { FailureContext } from './classify.js';
import type { ReceivedResponse } from './response.js';

export interface WireRequest {
  readonly method: 'get' | 'post' | 'delete';
  /** Below the API's root. */
  readonly path: string;
  readonly bodyJson?: string;
  /** Instead of a `bodyJson`. The deadline is then one of silence: it starts anew with each piece that goes out. */
  readonly upload?: UploadBody;
  /** Takes the body of an answer, as it comes; the deadline is then one of silence too. */
  readonly sink?: Writable;
}

export interface UploadBody {
  readonly contentType: string;
  /** Of the whole of it. */
  readonly bytes: number;
  /** @param onProgress called for each piece that is taken */
  open(onProgress: () => void): Readable;
}

/**
 * One request, its response read whole within its deadline; everything that can go wrong with it is a value.
 * @param read of a response with status 2xx
 */
export type SendWireRequest = <Answer>(
  request: WireRequest,
  options: SendOptions,
  read: (received: ReceivedResponse, context: FailureContext) => Answer,
) => Promise<Answer | ProviderRejection | ProviderAborted>;
