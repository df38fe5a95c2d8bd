/** The vocabulary of what can go wrong with a call. One kind, one treatment: see retry-decision.ts. */
export const FAILURE_KINDS = [
  /** 429 throttling, `slow_down`: the lane pauses, the task goes back, no attempt used. */
  'rate_limited',
  /** 408, 409, 498, 5xx, 529: tried again with back-off; while nothing succeeds it is the server's own trouble. */
  'overloaded',
  /** Resets, DNS, refused connections, gateway pages, bodies cut off. */
  'network',
  /** No complete answer (headers and body) within the call's deadline. */
  'timeout',
  /** HTTP 200 that is no usable answer: no choices, empty content, JSON that does not fit the schema. */
  'bad_output',
  /** `finish_reason: length`. */
  'truncated',
  'content_filtered',
  'refused',
  /** 400, 422: this document cannot be answered as it is. */
  'invalid_request',
  /** 413, context length, "Request too large", larger than the whole tokens-per-minute limit. */
  'too_large',
  /** Money or a hard quota is gone: the run stops. */
  'quota_exhausted',
  /** Key or permission: the run stops. */
  'auth',
  /** Unknown model or wrong base URL: the run stops. */
  'not_found',
  /** The document brought the process down again and again. */
  'poison',
] as const;

export type FailureKind = (typeof FAILURE_KINDS)[number];

/** What a provider, or the network before it, did instead of answering. Never holds a key. */
export interface ProviderFailure {
  readonly kind: FailureKind;
  /** One line, at most a few hundred characters, keys redacted. */
  readonly message: string;
  readonly httpStatus?: number;
  /** The server's own machine-readable code, e.g. `insufficient_quota`; numbers as text. */
  readonly code?: string;
  readonly requestId?: string;
  /** How long the server asked to wait, when it said so. */
  readonly retryAfterMs?: number;
  /** JSON text of what there was of an answer: its text, or its message where that holds more than text. */
  readonly partialOutputJson?: string;
  /** The request never left this machine: nobody can have answered it, or billed it. */
  readonly isUnsent?: true;
  /**
   * What this machine is short of, where that is why the request never left; says nothing of the document or the
   * server. `connections`: it can open no more of them now; `network`: it has no way out.
   */
  readonly shortOf?: 'connections' | 'network';
}
