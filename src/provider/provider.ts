/**
 * The port to a server that answers requests, in this program's own words. Backends live beside it
 * (`openai/`); the engine sees only this file. A provider makes exactly one HTTP request per `send`:
 * retries and pacing belong to the engine, so that no request passes the limiter unseen.
 */
import type { EndSignal } from '../core/clock.js';
import type { EndpointName } from '../core/endpoint-name.js';
import type { ProviderFailure } from '../core/failure.js';
import type { RateLimitHints } from '../core/limits.js';
import type { Redactor } from '../core/redact.js';
import type { BilledUsage, TokenUsage } from '../core/usage.js';
import type { AnsweredReading } from '../endpoints/endpoint.js';

export interface ProviderRequest {
  readonly endpoint: EndpointName;
  /** The request body, rendered; goes over the wire as these very characters. */
  readonly bodyJson: string;
  /** Documents that it asks for, at least one. */
  readonly parts: number;
  /** Where several requests go in one call, below the base URL; absent: to their endpoint. */
  readonly groupPath?: string;
}

export interface ProviderAnswer {
  readonly ok: true;
  /** One for each document, in the request's order. */
  readonly parts: readonly AnswerPart[];
  /** The model the server says answered. */
  readonly model: string;
  /** Null where the server does not say. */
  readonly usage: BilledUsage | null;
  /** What each document used, where the server says; absent: nothing but the sum is known. */
  readonly usages?: readonly TokenUsage[];
  /** Micro-dollars where the server itself states the cost (OpenRouter, LiteLLM), else null. */
  readonly costMicroUsd: number | null;
  readonly httpStatus: number;
  readonly requestId: string | null;
  readonly hints: RateLimitHints;
}

export type AnswerPart =
  | AnsweredReading
  /** The call as a whole was answered, this document was not. Of a call for one document that is a rejection. */
  | { readonly ok: false; readonly failure: ProviderFailure };

export interface ProviderRejection {
  readonly ok: false;
  readonly failure: ProviderFailure;
  /** What was billed all the same: a truncated or refused answer costs what it cost. */
  readonly usage: BilledUsage | null;
  readonly costMicroUsd: number | null;
  readonly hints: RateLimitHints;
}

/** The call was cut off by our own signal (a shutdown); says nothing of the document or the server. */
export interface ProviderAborted {
  readonly ok: false;
  readonly aborted: true;
  /** It had not left yet: nobody can have answered it, or billed it. */
  readonly isUnsent?: true;
}

export type ProviderReply = ProviderAnswer | ProviderRejection | ProviderAborted;

export interface SendOptions {
  /** Over headers and body together. */
  readonly timeoutMs: number;
  /** This call's own. */
  readonly signal: EndSignal;
}

/** What a server says when it is asked for its models: nothing is generated, and nothing costs anything. */
export type ProviderProbe =
  | { readonly outcome: 'listed'; readonly models: readonly string[]; readonly hints: RateLimitHints }
  /** It answers, but keeps no list; that says nothing of key or model. */
  | { readonly outcome: 'unlisted'; readonly hints: RateLimitHints }
  | { readonly outcome: 'failed'; readonly failure: ProviderFailure; readonly hints: RateLimitHints }
  | { readonly outcome: 'aborted' };

export interface Provider {
  /** Never rejects for anything a server or network can do; that is a value. */
  send(request: ProviderRequest, options: SendOptions): Promise<ProviderReply>;
  /** Asks whether the server is there, takes the key and knows which models. Never rejects, as `send`. */
  probe(options: SendOptions): Promise<ProviderProbe>;
  close(): Promise<void>;
  /** Takes this provider's secrets out of words that came from outside; absent where it has none. */
  readonly redact?: Redactor;
}
