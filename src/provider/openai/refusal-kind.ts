/**
 * Which kind of failure a refusal is. Authority, from high to low: the machine-readable codes that mean one
 * thing wherever they stand, the server's `x-should-retry`, the HTTP status, and only then words in the message,
 * for servers that answer in prose alone.
 */
import type { FailureKind } from '../../core/failure.js';
import { isJsonObject, type JsonObject } from '../../core/json.js';
import type { HeaderReader } from './headers.js';

/** A response that is no answer. */
export interface Refusal {
  readonly status: number;
  readonly headers: HeaderReader;
  /** The error object of the body, see error-body.ts. */
  readonly error: JsonObject;
}

/** Kinds by word. @param words of each kind, in lower case, with white space between */
function byWord(words: Readonly<Partial<Record<FailureKind, string>>>): ReadonlyMap<string, FailureKind> {
  const kinds = Object.entries(words) as [FailureKind, string][];
  return new Map(kinds.flatMap(([kind, text]) => (text.match(/\w+/g) ?? []).map((word) => [word, kind])));
}

/** Codes that mean one thing whatever the status beside them. */
const CODE_KINDS = byWord({
  // Money. These come with 429 from OpenAI, where the status alone would say "slow down"; `budget_exceeded` is
  // LiteLLM's own, of a key or a team.
  quota_exhausted: `
    insufficient_quota credit_balance_exhausted organization_spend_limit_exceeded
    project_spend_limit_exceeded organization_usage_limit_exceeded billing_hard_limit_reached
    billing_not_active billing_error budget_exceeded access_terminated insufficient_balance
    insufficient_credits exceeded_current_quota_error
  `,
  too_large: `
    context_length_exceeded string_above_max_length exceed_context_size_error request_too_large
    tokens_limit_reached
  `,
  content_filtered: `
    content_filter content_policy_violation responsibleaipolicyviolation moderation_blocked
    image_content_policy_violation bio_policy data_inspection_failed
  `,
  // Groq: the model's output did not parse; another try may.
  bad_output: 'json_validate_failed tool_use_failed',
  auth: 'invalid_api_key api_key_invalid missing_api_key unsupported_country_region_territory',
  not_found: 'model_not_found deploymentnotfound model_decommissioned unknown_model invalid_model',
  // The last is of batches: their queue is full.
  rate_limited: 'rate_limit_exceeded ratelimitreached too_many_requests slow_down token_limit_exceeded',
});

/**
 * Words that servers use as `type` or `status`: they follow the status, so they count only without one. Those about images,
 * prompts and vector stores are of responses that failed under HTTP 200.
 */
const TYPE_KINDS = byWord({
  rate_limited: 'rate_limit_error resource_exhausted',
  overloaded: `
    server_is_overloaded service_unavailable_error unavailable_error unavailable overloaded_error
    capacity_exceeded server_error internal_server_error internal api_error timeout vector_store_timeout
  `,
  auth: 'authentication_error permission_error permission_denied unauthenticated',
  not_found: 'not_found_error not_found',
  invalid_request: `
    invalid_request_error invalid_argument invalid_prompt data_residency_mismatch invalid_image
    invalid_image_format invalid_base64_image invalid_image_url invalid_image_mode image_too_large
    image_too_small image_parse_error image_file_too_large unsupported_image_media_type empty_image_file
    failed_to_download_image image_file_not_found
  `,
});

const STATUS_KINDS: Readonly<Record<number, FailureKind>> = {
  401: 'auth',
  402: 'quota_exhausted',
  403: 'auth',
  404: 'not_found',
  // Nothing takes a POST there: not an API's address, or a model that is gone.
  405: 'not_found',
  407: 'auth',
  408: 'overloaded',
  409: 'overloaded',
  410: 'not_found',
  413: 'too_large',
  421: 'overloaded',
  // Inference servers behind a router report a failed worker so.
  424: 'overloaded',
  425: 'overloaded',
  429: 'rate_limited',
  // Groq's flexible tier is full; a gateway's client went away.
  498: 'overloaded',
  499: 'overloaded',
  501: 'not_found',
};

function kindOfStatus(status: number): FailureKind {
  if (status >= 300 && status < 400) return 'not_found';
  return STATUS_KINDS[status] ?? (status >= 500 ? 'overloaded' : 'invalid_request');
}

/** The kind of a response whose status says that it is no answer. */
export function kindOfRefusal(refusal: Refusal): FailureKind {
  const { status, headers, error } = refusal;
  if (isInFlightBudget(error)) return 'rate_limited';
  if (isLargerThanLimit(error)) return 'too_large';

  const coded = lookUp(CODE_KINDS, codesOf(error));
  // Groq refuses a request larger than its tokens-per-minute limit with 413 and this code.
  if (coded !== undefined && !(coded === 'rate_limited' && status === 413)) return coded;

  const kind = kindOfStatus(status);
  const refined = refineByDetail(status, kind, refusal) ?? refineByProse(status, error) ?? kind;
  return obeyShouldRetry(headers.get('x-should-retry'), status, refined);
}

/** The kind of an error object where no status goes with it. */
export function kindWithoutStatus(refusal: Refusal): FailureKind {
  const { error } = refusal;
  if (isLargerThanLimit(error)) return 'too_large';
  const codes = codesOf(error);
  return lookUp(CODE_KINDS, codes) ?? lookUp(TYPE_KINDS, codes) ?? 'bad_output';
}

/** A server that says so knows better than any table; it speaks of this very request. */
function obeyShouldRetry(word: string | null, status: number, kind: FailureKind): FailureKind {
  const retryable = kind === 'rate_limited' || kind === 'overloaded' || kind === 'network';
  if (word === 'true' && !retryable && kind !== 'quota_exhausted') return 'overloaded';
  if (word === 'false' && retryable) return status === 429 ? 'quota_exhausted' : 'invalid_request';
  return kind;
}

/** Every machine-readable word in the error, in lower case; plain numbers say no more than the status. */
export function codesOf(error: JsonObject): string[] {
  const words: unknown[] = [error['code'], error['type'], error['status']];
  if (isJsonObject(error['innererror'])) words.push(error['innererror']['code']);
  if (Array.isArray(error['details'])) {
    for (const detail of error['details']) if (isJsonObject(detail)) words.push(detail['reason']);
  }
  return words.filter((word): word is string => typeof word === 'string').map((word) => word.toLowerCase());
}

function lookUp(table: ReadonlyMap<string, FailureKind>, codes: string[]): FailureKind | undefined {
  return codes.map((code) => table.get(code)).find((kind) => kind !== undefined);
}

/** OpenRouter: 402 for calls that are open right now, not for an empty account. */
function isInFlightBudget(error: JsonObject): boolean {
  return (
    isJsonObject(error['metadata']) && error['metadata']['limit_source'] === 'openrouter_in_flight_budget'
  );
}

const LIMIT_AND_REQUESTED = /\blimit:? ([\d,]+)\b.{0,80}\brequested:? ([\d,]+)\b/i;

/** OpenAI and Groq word it as throttling, but no wait makes one request fit that is larger than the bucket. */
function isLargerThanLimit(error: JsonObject): boolean {
  const message = messageOf(error);
  if (/^request too large\b/i.test(message)) return true;
  const [, limit, requested] = LIMIT_AND_REQUESTED.exec(message) ?? [];
  return limit !== undefined && requested !== undefined && readInteger(requested) > readInteger(limit);
}

function readInteger(text: string): number {
  return Number(text.replaceAll(',', ''));
}

/** Mistral's; zero in one of them is a plan without allowance, or one that is used up. */
const ALLOWANCE_HEADERS = [
  'x-ratelimit-limit-req-minute',
  'x-ratelimit-limit-tokens-minute',
  'x-ratelimit-remaining-tokens-month',
];

/** What headers and structured details add to a status that means several things. */
function refineByDetail(status: number, kind: FailureKind, refusal: Refusal): FailureKind | undefined {
  const { headers, error } = refusal;
  if (status === 429) {
    if (ALLOWANCE_HEADERS.some((name) => headers.get(name) === '0')) return 'quota_exhausted';
    if (violatesDailyQuota(error)) return 'quota_exhausted';
  }
  if (status === 403) {
    // A firewall's page is about this one document, a key's refusal would come from the API, in JSON.
    if (headers.get('content-type')?.includes('text/html')) return 'network';
    const { metadata } = error;
    if (isJsonObject(metadata) && ('reasons' in metadata || 'flagged_input' in metadata)) {
      return 'content_filtered';
    }
  }
  return kind === 'not_found' ? kind : undefined;
}

/** Gemini names the quota it counted against; a day's does not come back within a run's patience. */
function violatesDailyQuota(error: JsonObject): boolean {
  if (!Array.isArray(error['details'])) return false;
  return error['details'].some(
    (detail) =>
      isJsonObject(detail) &&
      Array.isArray(detail['violations']) &&
      detail['violations'].some(
        (violation) =>
          isJsonObject(violation) &&
          (String(violation['quotaId']).includes('PerDay') || violation['quotaValue'] === '0'),
      ),
  );
}

const TOO_LONG =
  /\bcontext (?:length|window|size)\b|\bmaximum (?:context|prompt|input) length\b|\b(?:prompt|input) is too (?:long|large)\b|\btoo many (?:input )?tokens\b|\blarger than the (?:max|maximum) context\b|\binputs?` tokens \+/i;
/** What servers without a code for it say when money, or what a plan holds, is used up; and who says so. */
const SPENT: readonly RegExp[] = [
  // DeepSeek (api-docs.deepseek.com/quick_start/error_codes), Moonshot, gateways of the new-api family.
  /\binsufficient (?:account )?(?:balance|credits?|funds|quota)\b/i,
  // Anthropic (docs.claude.com/en/api/errors): a prepaid account.
  /\bcredit balance is too low\b/i,
  /\bout of credits\b/i,
  // OpenAI (platform.openai.com/docs/guides/error-codes).
  /\bbilling hard limit\b/i,
  /\bexceeded your current quota\b/i,
  // OpenRouter (openrouter.ai/docs/api/reference/limits).
  /\bfree-models-per-day\b/i,
  // Anthropic's spend limit, with 400 (github.com/anthropics/claude-code/issues/1273).
  /\breached your specified (?:api )?usage limits?\b/i,
  // Anthropic's organizations (github.com/anthropics/claude-code/issues/54635 and 68520).
  /\bhit your (?:org's )?monthly (?:usage|spend) limit\b/i,
  // GitHub (github.com/github/app/issues/3166), Hugging Face (huggingface.co/docs/inference-providers/pricing).
  /\bexceeded your monthly (?:quota|included credits)\b/i,
  // Cohere's trial keys (docs.cohere.com/docs/rate-limits).
  /\b1,?000 api calls ?\/ ?month\b/i,
  // Perhaps in other words: what a month or a plan holds is gone.
  /\b(?:monthly|plan)(?:'s)? (?:\w+ )?(?:quota|limit|budget|allowance|credits?) (?:\w+ )?(?:exceeded|reached|exhausted|used up)\b/i,
];
/** Then "quota" means that of a minute, and waiting helps. */
const OF_A_MINUTE = /\b(?:tokens?|requests?)[ -]per[ -](?:min|minute|second)\b|\b[tr]pm\b/i;

function isSpent(message: string): boolean {
  return SPENT.some((phrase) => phrase.test(message)) && !OF_A_MINUTE.test(message);
}

const FILTERED = /\bcontent (?:management )?(?:policy|filter)|\bsafety system\b|\bflagged\b/i;
const BAD_KEY =
  /\b(?:incorrect|invalid|missing) api[ -]?key\b|\bapi[ -]?key (?:is )?(?:not valid|invalid|missing|expired)\b/i;
const NO_MODEL = /\bmodel\b.{0,80}\b(?:does not exist|not exist|not found)\b/i;

/** The last resort: servers that put all they know into one English sentence. */
function refineByProse(status: number, error: JsonObject): FailureKind | undefined {
  const message = messageOf(error);
  switch (status) {
    case 400:
    case 422:
      if (TOO_LONG.test(message)) return 'too_large';
      if (isSpent(message)) return 'quota_exhausted';
      if (FILTERED.test(message)) return 'content_filtered';
      if (BAD_KEY.test(message)) return 'auth';
      return NO_MODEL.test(message) ? 'not_found' : undefined;
    case 403:
      if (TOO_LONG.test(message)) return 'too_large';
      if (isSpent(message) || /\bquota\b/i.test(message)) return 'quota_exhausted';
      return FILTERED.test(message) ? 'content_filtered' : undefined;
    case 429:
      // Google says "you exceeded your current quota" of a minute's quota too, but with a status word beside it.
      return !('status' in error) && !/googleapis/.test(message) && isSpent(message)
        ? 'quota_exhausted'
        : undefined;
    case 500:
      // llama.cpp: an input larger than the batch or the slot can hold.
      return TOO_LONG.test(message) ? 'too_large' : undefined;
    default:
      return undefined;
  }
}

/** Messages are looked at up to here; beyond it a body is a page, not a message. */
export const READ_MESSAGE_LENGTH = 4_000;

/** The error's message, not yet fit to be shown. */
export function messageOf(error: JsonObject): string {
  return typeof error['message'] === 'string' ? error['message'].slice(0, READ_MESSAGE_LENGTH) : '';
}
