/** A request as it goes to the server, whatever kind of line it came from. */
import type { Attachment } from '../core/attachment.js';
import type { EndpointName } from '../core/endpoint-name.js';
import type { JsonObject } from '../core/json.js';

export interface RenderedRequest {
  readonly endpoint: EndpointName;
  readonly model: string;
  /** Tokens the answer may have at most, where the request says so. */
  readonly outputCap: number | null;
  /** `service_tier` as the request asks for it; null where it does not. */
  readonly serviceTier: string | null;
  /** The text of the messages, for token estimates; images, tools and schemas are not in it. */
  readonly inputText: string;
  /** Images and PDFs, in their order; those of local files are not in `bodyJson` yet, see `Endpoint.placeFile`. */
  readonly attachments: readonly Attachment[];
  /** Requests of one key may share a call; null: it goes alone. */
  readonly groupKey: string | null;
  /** Entries that it takes in a call's array of inputs. */
  readonly inputs: number;
  /** The body to send. Made when it is read, for an import needs only `fingerprint`. */
  readonly bodyJson: string;
  /**
   * What the request's hash is taken of: for documents of one form, equal if and only if the bodies are. Not the body
   * itself, since escaping 1 KB as JSON costs more (2.1 µs) than hashing it (1.1 µs).
   */
  readonly fingerprint: string;
}

/** What of a request is needed to send it. */
export type DocumentRequest = Pick<RenderedRequest, 'endpoint' | 'bodyJson' | 'attachments'>;

/** A tier that is no word is the server's to refuse. */
export function serviceTierOf(body: JsonObject): string | null {
  const tier = body['service_tier'];
  return typeof tier === 'string' ? tier : null;
}
