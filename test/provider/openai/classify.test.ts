import { describe, expect, it } from 'vitest';
import type { FailureKind } from '../../../src/core/failure.js';
import type { Json } from '../../../src/core/json.js';
import { createRedactor } from '../../../src/core/redact.js';
import {
  classifyErrorUnderOk,
  classifyRefusal,
  type FailureContext,
} from '../../../src/provider/openai/classify.js';
import { errorObjectOf, readErrorObject } from '../../../src/provider/openai/error-body.js';

const SECRET = 'sk-live-Zq7Lm2Xw9Rt4Yb8Nc3Vd6';
const context: FailureContext = {
  url: 'https://api.example.test/v1/chat/completions',
  nowMs: Date.parse('2026-03-01T12:00:00Z'),
  redact: createRedactor([SECRET]),
};

type Row = readonly [
  what: string,
  status: number,
  body: Json,
  kind: FailureKind,
  headers?: Record<string, string>,
];

function classify(status: number, body: Json, headers: Record<string, string> = {}) {
  const error = readErrorObject(typeof body === 'string' ? body : JSON.stringify(body));
  return classifyRefusal({ status, headers: new Headers(headers), error }, context);
}

const openai = (
  message: string,
  type: string | null,
  code: string | number | null,
  param: string | null = null,
) => ({
  error: { message, type, param, code },
});
const HTML = { 'content-type': 'text/html' };
const page = (title: string) =>
  `<!DOCTYPE html><html><head><title>${title}</title></head><body>…</body></html>`;

describe('one kind for each way a server refuses', () => {
  const rows: Row[] = [
    // 400
    [
      'context too long',
      400,
      openai('Too long', 'invalid_request_error', 'context_length_exceeded', 'messages'),
      'too_large',
    ],
    [
      'a string too long',
      400,
      openai('Too long', 'invalid_request_error', 'string_above_max_length'),
      'too_large',
    ],
    [
      'a prompt the server finds invalid',
      400,
      openai('Bad', 'invalid_request_error', 'invalid_prompt'),
      'invalid_request',
    ],
    [
      'a parameter the model does not know',
      400,
      openai('No max_tokens', 'invalid_request_error', 'unsupported_parameter', 'max_tokens'),
      'invalid_request',
    ],
    [
      'a value the model does not take',
      400,
      openai('Only 1', 'invalid_request_error', 'unsupported_value', 'temperature'),
      'invalid_request',
    ],
    [
      'a bad image',
      400,
      openai('Bad image', 'invalid_request_error', 'invalid_image_url'),
      'invalid_request',
    ],
    ['content filter', 400, openai('Filtered', null, 'content_filter', 'prompt'), 'content_filtered'],
    [
      'content policy',
      400,
      openai('Policy', 'invalid_request_error', 'content_policy_violation'),
      'content_filtered',
    ],
    [
      'content filter of Azure, by the inner code',
      400,
      { error: { message: 'Filtered', code: null, innererror: { code: 'ResponsibleAIPolicyViolation' } } },
      'content_filtered',
    ],
    [
      'billing limit',
      400,
      openai('Hard limit', 'invalid_request_error', 'billing_hard_limit_reached'),
      'quota_exhausted',
    ],
    [
      'output that did not parse (Groq)',
      400,
      openai('Failed', 'invalid_request_error', 'json_validate_failed'),
      'bad_output',
    ],
    [
      'a bad key (Gemini)',
      400,
      [
        {
          error: {
            code: 400,
            message: 'API key not valid.',
            status: 'INVALID_ARGUMENT',
            details: [{ reason: 'API_KEY_INVALID' }],
          },
        },
      ],
      'auth',
    ],
    [
      'a bad key (xAI)',
      400,
      { code: 'Client specified an invalid argument', error: 'Incorrect API key provided: ab' },
      'auth',
    ],
    [
      'context too long (older vLLM, flat)',
      400,
      {
        object: 'error',
        message: "This model's maximum context length is 4096 tokens.",
        type: 'BadRequestError',
        param: null,
        code: 400,
      },
      'too_large',
    ],
    [
      'context too long (vLLM)',
      400,
      openai("This model's maximum context length is 4096 tokens.", 'BadRequestError', 400),
      'too_large',
    ],
    [
      'context too long (llama.cpp)',
      400,
      {
        error: {
          code: 400,
          message: 'exceeds',
          type: 'exceed_context_size_error',
          n_prompt_tokens: 9000,
          n_ctx: 4096,
        },
      },
      'too_large',
    ],
    [
      'context too long (Anthropic)',
      400,
      {
        type: 'error',
        error: {
          type: 'invalid_request_error',
          message: 'prompt is too long: 210000 tokens > 200000 maximum',
        },
      },
      'too_large',
    ],
    [
      'context too long (Mistral)',
      400,
      {
        object: 'error',
        message: 'Prompt has 40000 tokens: too large for model with 32768 maximum context length',
        type: 'invalid_request_prompt',
        code: '3051',
      },
      'too_large',
    ],
    [
      'an empty account (Anthropic)',
      400,
      {
        type: 'error',
        error: { type: 'invalid_request_error', message: 'Your credit balance is too low to use the API.' },
      },
      'quota_exhausted',
    ],
    [
      'an unknown model (DeepSeek)',
      400,
      openai('Model Not Exist', 'invalid_request_error', 'invalid_request_error'),
      'not_found',
    ],
    [
      'an unknown model (Mistral)',
      400,
      { object: 'error', message: 'Invalid model: x', type: 'invalid_model', code: '1500' },
      'not_found',
    ],
    [
      'a retired model (Groq)',
      400,
      openai('Gone', 'invalid_request_error', 'model_decommissioned'),
      'not_found',
    ],
    [
      'an image that a model cannot see',
      400,
      openai('The model does not support images', 'invalid_request_error', null),
      'invalid_request',
    ],
    ['proxy HTML', 400, page('400 Bad Request'), 'invalid_request', HTML],
    ['no body', 400, '', 'invalid_request'],
    // 401
    ['a wrong key', 401, openai('Incorrect API key', 'invalid_request_error', 'invalid_api_key'), 'auth'],
    [
      'a wrong organisation',
      401,
      openai('No such organization', 'invalid_request_error', 'invalid_organization'),
      'auth',
    ],
    [
      'an address that is not allowed',
      401,
      openai('IP not authorized', 'invalid_request_error', 'ip_not_authorized'),
      'auth',
    ],
    ['a wrong key (vLLM)', 401, { error: 'Unauthorized' }, 'auth'],
    [
      'a wrong key (Anthropic)',
      401,
      { type: 'error', error: { type: 'authentication_error', message: 'bad key' } },
      'auth',
    ],
    // 402
    [
      'no credits (OpenRouter)',
      402,
      { error: { code: 402, message: 'Insufficient credits' } },
      'quota_exhausted',
    ],
    [
      'no balance (DeepSeek)',
      402,
      openai('Insufficient Balance', 'unknown_error', 'invalid_request_error'),
      'quota_exhausted',
    ],
    [
      'billing (Anthropic)',
      402,
      { type: 'error', error: { type: 'billing_error', message: 'pay' } },
      'quota_exhausted',
    ],
    ['prepaid credit gone (Gemini)', 402, [{ error: { code: 402, message: 'Top up' } }], 'quota_exhausted'],
    [
      'calls open just now (OpenRouter)',
      402,
      {
        error: { code: 402, message: 'In flight', metadata: { limit_source: 'openrouter_in_flight_budget' } },
      },
      'rate_limited',
      { 'retry-after': '3' },
    ],
    // 403
    ['a region', 403, openai('Country', 'request_forbidden', 'unsupported_country_region_territory'), 'auth'],
    ['a model not permitted', 403, openai('No access to the model', 'invalid_request_error', null), 'auth'],
    [
      'moderation (OpenRouter)',
      403,
      {
        error: {
          code: 403,
          message: 'Moderation',
          metadata: { reasons: ['violence'], flagged_input: '…', provider_name: 'x' },
        },
      },
      'content_filtered',
    ],
    [
      'context too long (Together)',
      403,
      openai('Input tokens exceed the context length of the model', 'invalid_request_error', null),
      'too_large',
    ],
    [
      'call volume (Azure API Management)',
      403,
      { statusCode: 403, message: 'Out of call volume quota. Quota will be replenished in 00:10:00.' },
      'quota_exhausted',
    ],
    ["a firewall's page", 403, page('Attention Required!'), 'network', HTML],
    // 404 and its like
    [
      'an unknown model',
      404,
      openai('The model does not exist', 'invalid_request_error', 'model_not_found'),
      'not_found',
    ],
    [
      'an unknown deployment (Azure)',
      404,
      { error: { code: 'DeploymentNotFound', message: 'No deployment' } },
      'not_found',
    ],
    ['a wrong base URL (FastAPI)', 404, { detail: 'Not Found' }, 'not_found'],
    ['a wrong base URL (HTML)', 404, page('404 Not Found'), 'not_found', HTML],
    [
      'a model not pulled (Ollama)',
      404,
      { error: { message: 'model "x" not found', type: 'not_found_error', param: null, code: null } },
      'not_found',
    ],
    ['no endpoints (OpenRouter)', 404, { error: { code: 404, message: 'No endpoints found' } }, 'not_found'],
    ['a page that takes no POST', 405, page('405 Not Allowed'), 'not_found', HTML],
    ['a model that is gone', 410, openai('Gone', null, null), 'not_found'],
    ['a proxy that wants a password', 407, page('407'), 'auth', HTML],
    // 408 to 424
    ['request timeout', 408, openai('Timeout', null, null), 'overloaded'],
    ['conflict', 409, openai('Locked', null, null), 'overloaded'],
    ['a body too large (proxy HTML)', 413, page('413 Request Entity Too Large'), 'too_large', HTML],
    [
      'a body too large (Anthropic)',
      413,
      { type: 'error', error: { type: 'request_too_large', message: 'over 32 MB' } },
      'too_large',
    ],
    [
      'larger than the minute (Groq)',
      413,
      openai('Request too large for model x: Limit 6000, Requested 7000', 'tokens', 'rate_limit_exceeded'),
      'too_large',
    ],
    [
      'larger than the minute, without figures',
      413,
      openai('Too large', 'tokens', 'rate_limit_exceeded'),
      'too_large',
    ],
    [
      'validation (FastAPI)',
      422,
      { detail: [{ loc: ['body', 'messages'], msg: 'field required', type: 'missing' }] },
      'invalid_request',
    ],
    [
      'validation (Mistral)',
      422,
      {
        object: 'error',
        message: { detail: [{ loc: ['body', 'x'], msg: 'extra' }] },
        type: 'invalid_request_error',
      },
      'invalid_request',
    ],
    ['a failed worker', 424, openai('Inference failed', null, null), 'overloaded'],
    // 429: waiting helps
    [
      'throttling by tokens',
      429,
      openai(
        'Limit 50000, Used 47949, Requested 3006. Please try again in 1.146s.',
        'tokens',
        'rate_limit_exceeded',
      ),
      'rate_limited',
    ],
    [
      'throttling by requests',
      429,
      openai('Limit 3, Used 3, Requested 1', 'requests', 'rate_limit_exceeded'),
      'rate_limited',
    ],
    ['growth too fast', 429, openai('Slow down', 'rate_limit_error', 'slow_down'), 'rate_limited'],
    ['flexible tier full', 429, openai('Resource unavailable', null, 'resource_unavailable'), 'rate_limited'],
    ['Mistral, flat', 429, { message: 'Rate limit exceeded', code: '1300' }, 'rate_limited'],
    [
      "Gemini, a minute's quota, worded as money",
      429,
      [
        {
          error: {
            code: 429,
            message: 'You exceeded your current quota, please check your plan and billing details.',
            status: 'RESOURCE_EXHAUSTED',
            details: [{ violations: [{ quotaId: 'GenerateRequestsPerMinute' }] }, { retryDelay: '37s' }],
          },
        },
      ],
      'rate_limited',
    ],
    [
      'Gemini through a gateway',
      429,
      openai(
        'You exceeded your current quota: metric generativelanguage.googleapis.com/x',
        'throttling_error',
        '429',
      ),
      'rate_limited',
    ],
    [
      'OpenRouter, per minute',
      429,
      { error: { code: 429, message: 'Rate limit exceeded: free-models-per-min' } },
      'rate_limited',
    ],
    [
      'OpenRouter, upstream',
      429,
      {
        error: {
          code: 429,
          message: 'Provider returned error',
          metadata: { provider_name: 'x', raw: 'busy' },
        },
      },
      'rate_limited',
    ],
    [
      'Azure API Management',
      429,
      { statusCode: 429, message: 'Rate limit is exceeded. Try again in 20 seconds.' },
      'rate_limited',
    ],
    ['Cloudflare', 429, page('Error 1015'), 'rate_limited', HTML],
    ['a text', 429, 'Too many requests', 'rate_limited'],
    ['no body', 429, '', 'rate_limited'],
    ['the same code with 403', 403, openai('Slow', null, 'rate_limit_exceeded'), 'rate_limited'],
    [
      "a minute's quota, whatever stands beside it",
      429,
      { error: { message: 'Insufficient quota: tokens per minute exceeded', status: 'x', type: 'y' } },
      'rate_limited',
    ],

    // 429: no wait helps
    ['GitHub', 429, openai('You have exceeded your monthly quota', null, null), 'quota_exhausted'],
    ['Anthropic', 429, openai("You've hit your monthly spend limit", null, null), 'quota_exhausted'],
    [
      'Cohere',
      429,
      { message: 'You are using a Trial key, which is limited to 1000 API calls / month.' },
      'quota_exhausted',
    ],
    ['a plan', 429, { message: 'Plan usage limit reached' }, 'quota_exhausted'],
    [
      'Anthropic, as 400',
      400,
      openai('You have reached your specified API usage limits.', 'invalid_request_error', null),
      'quota_exhausted',
    ],
    [
      'no money left',
      429,
      openai('You exceeded your current quota', 'insufficient_quota', 'insufficient_quota'),
      'quota_exhausted',
    ],
    ['no money left, by the type', 429, openai('No money', 'insufficient_quota', null), 'quota_exhausted'],
    [
      'credit used up',
      429,
      openai('Credit', 'insufficient_quota', 'credit_balance_exhausted'),
      'quota_exhausted',
    ],
    [
      "the organisation's spend limit",
      429,
      openai('Spend', 'insufficient_quota', 'organization_spend_limit_exceeded'),
      'quota_exhausted',
    ],
    [
      "the project's spend limit",
      429,
      openai('Spend', 'insufficient_quota', 'project_spend_limit_exceeded'),
      'quota_exhausted',
    ],
    [
      "the organisation's usage limit",
      429,
      openai('Usage', 'insufficient_quota', 'organization_usage_limit_exceeded'),
      'quota_exhausted',
    ],
    [
      'billing not active',
      429,
      openai('Billing', 'billing_not_active', 'billing_not_active'),
      'quota_exhausted',
    ],
    ['access ended', 429, openai('Ended', null, 'access_terminated'), 'quota_exhausted'],
    [
      'no money left, in words alone',
      429,
      { error: 'You exceeded your current quota, please check your plan' },
      'quota_exhausted',
    ],
    [
      "OpenRouter, a day's free calls",
      429,
      { error: { code: 429, message: 'Rate limit exceeded: free-models-per-day' } },
      'quota_exhausted',
    ],
    [
      "Gemini, a day's quota",
      429,
      [
        {
          error: {
            code: 429,
            message: 'quota',
            status: 'RESOURCE_EXHAUSTED',
            details: [{ violations: [{ quotaId: 'GenerateRequestsPerDayPerProject' }] }],
          },
        },
      ],
      'quota_exhausted',
    ],
    [
      'a plan without allowance (Mistral)',
      429,
      { message: 'Rate limit exceeded', code: '1300' },
      'quota_exhausted',
      { 'x-ratelimit-limit-req-minute': '0' },
    ],
    [
      "a month's tokens gone (Mistral)",
      429,
      { message: 'Rate limit exceeded', code: '1300' },
      'quota_exhausted',
      { 'x-ratelimit-remaining-tokens-month': '0' },
    ],
    [
      'one request larger than the minute',
      429,
      openai(
        'Request too large for m on tokens per min (TPM): Limit 30000, Requested 34307.',
        'tokens',
        'rate_limit_exceeded',
      ),
      'too_large',
    ],
    [
      'the same without the first words',
      429,
      openai('TPM: Limit 30,000, Requested 34,307.', 'tokens', 'rate_limit_exceeded'),
      'too_large',
    ],
    // 498 and up
    ['flexible capacity (Groq)', 498, openai('Capacity', null, 'capacity_exceeded'), 'overloaded'],
    ['a client that went away', 499, openai('Closed', null, null), 'overloaded'],
    ['a server error', 500, openai('Oops', 'server_error', null), 'overloaded'],
    [
      'an input beyond the batch (llama.cpp)',
      500,
      {
        error: {
          code: 500,
          message: 'input is too large to process. increase the physical batch size',
          type: 'server_error',
        },
      },
      'too_large',
    ],
    [
      'what a server cannot do',
      501,
      { error: { code: 501, message: 'This server does not support it', type: 'not_supported_error' } },
      'not_found',
    ],
    ['a bad gateway', 502, page('502 Bad Gateway'), 'overloaded', HTML],
    [
      'an overloaded server',
      503,
      openai('Overloaded', 'service_unavailable_error', 'server_is_overloaded'),
      'overloaded',
    ],
    [
      'a growth too fast, said with 503',
      503,
      openai('Slow down', 'rate_limit_error', 'slow_down'),
      'rate_limited',
    ],
    [
      'a model that is loading (llama.cpp)',
      503,
      { error: { code: 503, message: 'Loading model', type: 'unavailable_error' } },
      'overloaded',
    ],
    [
      'a full queue (Ollama)',
      503,
      { error: { message: 'server busy', type: 'api_error', code: null } },
      'overloaded',
    ],
    ['a gateway timeout', 504, '', 'overloaded'],
    ...[520, 521, 522, 523, 524, 525, 526, 527, 530].map(
      (status): Row => [`Cloudflare ${status}`, status, page(`Error ${status}`), 'overloaded', HTML],
    ),
    [
      'an overloaded server (Anthropic)',
      529,
      { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
      'overloaded',
    ],
    // The server's own word
    [
      'an empty account, to be tried again',
      402,
      openai('Pay', null, null),
      'quota_exhausted',
      { 'x-should-retry': 'true' },
    ],
    ['400, to be tried again', 400, openai('Flaky', null, null), 'overloaded', { 'x-should-retry': 'true' }],
    ['401, to be tried again', 401, openai('Flaky', null, null), 'overloaded', { 'x-should-retry': 'true' }],
    [
      'no money, to be tried again',
      429,
      openai('Money', 'insufficient_quota', null),
      'quota_exhausted',
      { 'x-should-retry': 'true' },
    ],
    [
      '429, not to be tried again',
      429,
      openai('No', 'requests', null),
      'quota_exhausted',
      { 'x-should-retry': 'false' },
    ],
    [
      '500, not to be tried again',
      500,
      openai('No', 'server_error', null),
      'invalid_request',
      { 'x-should-retry': 'false' },
    ],
    // Redirects
    ['a redirect', 307, '', 'not_found', { location: 'https://elsewhere.test/v1/chat/completions' }],
  ];

  it.each(rows.map(([what, status, body, kind, headers]) => ({ what, status, body, kind, headers })))(
    '$what ($status)',
    ({ status, body, kind, headers }) => {
      const failure = classify(status, body, headers);
      expect(failure.kind).toBe(kind);
      expect(failure.httpStatus).toBe(status);
      expect(failure.message).not.toBe('');
    },
  );
});

describe('an error object under HTTP 200', () => {
  it.each<[string, Json, FailureKind]>([
    ['429 as a number', { error: { code: 429, message: 'Slow' } }, 'rate_limited'],
    ['429 as a text', { error: { code: '429', message: 'Slow' } }, 'rate_limited'],
    ['502', { error: { code: 502, message: 'Upstream' } }, 'overloaded'],
    ['503', { error: { code: 503, message: 'Upstream' } }, 'overloaded'],
    ['402', { error: { code: 402, message: 'Credits' } }, 'quota_exhausted'],
    ['400 about the context', { error: { code: 400, message: 'maximum context length is 10' } }, 'too_large'],
    ['a code in words', { error: { code: 'insufficient_quota', message: 'x' } }, 'quota_exhausted'],
    ['a type in words', { error: { type: 'overloaded_error', message: 'x' } }, 'overloaded'],
    ['a request larger than the minute', { error: { message: 'Request too large for m' } }, 'too_large'],
    ['a code nobody knows', { error: { code: 'E17', message: 'x' } }, 'bad_output'],
    ['a number that is no status', { error: { code: 1000, message: 'x' } }, 'bad_output'],
    ['a text', { error: 'something went wrong' }, 'bad_output'],
  ])('counts by its code: %s', (_what, body, kind) => {
    const failure = classifyErrorUnderOk(
      { status: 200, headers: new Headers(), error: errorObjectOf(body) },
      context,
    );
    expect(failure).toMatchObject({ kind, httpStatus: 200 });
  });
});

describe('what a failure says', () => {
  it('carries the code, the request id and the wait', () => {
    expect(
      classify(429, openai('Please try again in 1.5s.', 'tokens', 'rate_limit_exceeded'), {
        'x-request-id': 'req_7',
      }),
    ).toEqual({
      kind: 'rate_limited',
      message: 'Please try again in 1.5s.',
      httpStatus: 429,
      code: 'rate_limit_exceeded',
      requestId: 'req_7',
      retryAfterMs: 1_500,
    });
  });

  it.each<[string, Json, string | undefined]>([
    ['a number', { error: { message: 'x', code: 1300 } }, '1300'],
    ['a type where there is no code', openai('x', 'insufficient_quota', null), 'insufficient_quota'],
    [
      'a word where the code repeats the status',
      { error: { code: 429, status: 'RESOURCE_EXHAUSTED' } },
      'RESOURCE_EXHAUSTED',
    ],
    ['nothing', { error: { message: 'x', code: '', type: null } }, undefined],
  ])('names as the code %s', (_what, body, code) => {
    expect(classify(429, body).code).toBe(code);
  });

  it.each<[string, Json, string]>([
    ['an error with a text', { error: 'model is loading' }, 'model is loading'],
    [
      'an error with a text beside a message',
      { error: 'Bad', message: 'no such field' },
      'Bad: no such field',
    ],
    ['an error in a list', [{ error: { message: 'from a list' } }], 'from a list'],
    ['a detail', { detail: 'Method Not Allowed' }, 'Method Not Allowed'],
    [
      'a list of details',
      { detail: [{ loc: ['body', 'n'], msg: 'too small' }, 'and more'] },
      'body.n: too small; and more',
    ],
    ['a detail with an error in it', { detail: { error: { message: 'inner' } } }, 'inner'],
    ['a list of errors', { success: false, errors: [{ code: 7003, message: 'No route' }] }, 'No route'],
    ['a flat object', { object: 'error', message: 'flat', code: 1 }, 'flat'],
    ['a message that is an object', { message: { detail: [{ loc: ['body'], msg: 'bad' }] } }, 'body: bad'],
    ['a JSON text', '"just words"', 'just words'],
    ['a text', '  upstream connect error\n', 'upstream connect error'],
    ['HTML with a title', page('502 Bad  Gateway'), 'an HTML page: 502 Bad Gateway'],
    ['HTML with a heading', '<html><h1>Sorry &amp; goodbye</h1></html>', 'an HTML page: Sorry & goodbye'],
    [
      'HTML without either',
      '<html><style>p{}</style><script>x()</script><p>Down <b>now</b></p></html>',
      'an HTML page: Down now',
    ],
    ['nothing', '', 'The server answered 503 Service Unavailable'],
    ['an empty object', {}, 'The server answered 503 Service Unavailable'],
    ['an empty list', [], 'The server answered 503 Service Unavailable'],
    ['null', null, 'The server answered 503 Service Unavailable'],
    [
      'what the server behind said',
      { error: { message: 'Provider returned error', metadata: { raw: '{"e":"cold"}' } } },
      'Provider returned error: {"e":"cold"}',
    ],
  ])('takes its words from %s', (_shape, body, message) => {
    expect(classify(503, body).message).toBe(message);
  });

  it.each(['', 'x'])('is never cut through a character (%j before)', (before) => {
    const { message } = classify(400, openai(`${before}${'😀'.repeat(600)}`, null, null));
    expect(message).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])/);
    expect(message.length).toBeGreaterThan(490);
  });

  it('is one line of at most 500 characters, without what drives a terminal', () => {
    const { message } = classify(
      400,
      openai(`a\nb\u001b[31m\u2028\u202e\u0000c ${'😀'.repeat(600)}`, null, null),
    );
    expect(message).toMatch(/^a b \[31m c /);
    expect(message.length).toBeLessThanOrEqual(500);
    expect(message.endsWith('😀…')).toBe(true);
  });

  it('never holds the key, however the server shows it', () => {
    const failure = classify(
      401,
      openai(`Incorrect API key provided: sk-live*************Vd6, sent as ${SECRET}`, null, SECRET),
      { 'x-request-id': SECRET },
    );
    expect(JSON.stringify(failure)).not.toMatch(/Zq7Lm|c3Vd6|Vd6/);
  });

  it('says where it went when the address may be wrong', () => {
    expect(classify(404, { detail: 'Not Found' }).message).toBe(
      'Not Found (POST https://api.example.test/v1/chat/completions)',
    );
    expect(classify(404, openai('No such model', null, 'model_not_found')).message).toBe('No such model');
  });

  it.each([
    ['https://elsewhere.test/secret/path?q=1', 'https://elsewhere.test '],
    ['/v1/chat/completions/', 'https://api.example.test/v1/chat/completions/ '],
    ['https://[broken', 'a redirect without an address'],
  ])('names where a redirect to %s would lead', (location, shown) => {
    const { message } = classify(308, '', { location });
    expect(message).toContain(shown);
    expect(message).not.toContain('secret');
  });
});
