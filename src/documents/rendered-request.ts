/** A request as it goes to the server, whatever kind of line it came from. */
import type { JsonObject } from '../core/json.js';
import type { Attachment } from './attachment.js';
import { digest } from './key.js';

export interface RenderedRequest {
  readonly endpoint: 'chat';
  readonly model: string;
  /** Tokens the answer may have at most, where the request says so. */
  readonly outputCap: number | null;
  /** `service_tier` as the request asks for it; null where it does not. */
  readonly serviceTier: string | null;
  /** The text of the messages, for token estimates; images, tools and schemas are not in it. */
  readonly inputText: string;
  /** Images and PDFs, in their order; those of local files are not in `bodyJson` yet, see `loadAttachments`. */
  readonly attachments: readonly Attachment[];
  /** The body to send. Made when it is read, for an import needs only `fingerprint`. */
  readonly bodyJson: string;
  /**
   * What the request's hash is taken of: for documents of one form, equal if and only if the bodies are. Not the body
   * itself, since escaping 1 KB as JSON costs more (2.1 µs) than hashing it (1.1 µs).
   */
  readonly fingerprint: string;
}

/** The request's hash, for telling an edited document from one that only moved. */
export function requestHash(request: RenderedRequest): string {
  return `sha256:${digest(request.fingerprint)}`;
}

/** One is the newer name of the other, and a server refuses both together. */
export const OUTPUT_CAPS = ['max_completion_tokens', 'max_tokens'];

/** The cap on the answer's tokens that a body states, null when it states none. */
export function outputCapOf(body: JsonObject): number | null {
  const cap = OUTPUT_CAPS.map((name) => body[name]).find((value) => value !== undefined && value !== null);
  return typeof cap === 'number' && cap >= 0 ? cap : null;
}

/** A tier that is no word is the server's to refuse. */
export function serviceTierOf(body: JsonObject): string | null {
  const tier = body['service_tier'];
  return typeof tier === 'string' ? tier : null;
}

export function systemMessage(text: string): JsonObject {
  return { role: 'system', content: text };
}
