/** How each behaviour of directive.ts is played: the reply, and whether the call counts as let in. */
import type { DocumentRecord } from './books.js';
import { type BehaviourName, numberOr } from './directive.js';
import type { AnswerStamp, AnswerVariant, Inquiry } from './endpoint.js';
import type { SimulatorSettings } from './options.js';
import {
  insufficientQuota,
  invalidRequest,
  modelNotFound,
  type Refusal,
  refusal,
  requestTooLarge,
  slowDown,
  type ToldWait,
  tellWait,
  throttled,
  wrongKey,
} from './refusal.js';
import { type Reply, sendHtml, sendJson } from './reply.js';

/** Everything a behaviour may look at. */
export interface Scene {
  readonly inquiry: Inquiry;
  readonly settings: SimulatorSettings;
  readonly document: DocumentRecord;
  readonly stamp: AnswerStamp;
  readonly argument: string | null;
  /** The bearer key that was sent. */
  readonly key: string | null;
  readonly nowMs: number;
  /** How long the trouble will last, when that is known. */
  readonly waitMs: number | null;
  readonly port: number;
}

export type Plan =
  /** Let in: charged to the limits, answered after the latency (or after `delayMs`). */
  | {
      readonly admitted: true;
      readonly reply: Reply;
      /** True when this is a usable answer. */
      readonly answers: boolean;
      /** True when the reply tells what it used. */
      readonly tellsUsage: boolean;
      readonly delayMs?: number;
    }
  /** Turned away before it costs anything. */
  | { readonly admitted: false; readonly refusal: Refusal }
  | { readonly admitted: false; readonly reply: Reply };

type Play = (scene: Scene) => Plan;

/** What becomes of a batch's lines is batches.ts' to play. */
const PLAYS: Readonly<Record<Exclude<BehaviourName, `line-${string}`>, Play>> = {
  ok: answerWith('whole'),
  slow: (scene) => ({ ...answer(scene, 'whole'), delayMs: numberOr(scene.argument, 1_000) }),
  'slow-body': (scene) => ({
    admitted: true,
    answers: true,
    tellsUsage: true,
    reply: {
      type: 'drip',
      everyMs: 100,
      thenAfterMs: numberOr(scene.argument, 1_000),
      body: answerBody(scene, 'whole'),
    },
  }),
  '429': (scene) => refuse(scriptedThrottle(scene, tellWait(scene.settings.retryAfter, scene.waitMs))),
  'retry-after': holdBack,
  'slow-down': (scene) => refuse(slowDown(tellWait(scene.settings.retryAfter, scene.waitMs))),
  'insufficient-quota': () => refuse(insufficientQuota()),
  'request-too-large-429': ({ inquiry, settings }) => {
    const limit = settings.tpm ?? 30_000;
    return refuse(requestTooLarge(inquiry.model, limit, limit + inquiry.promptTokens));
  },
  '408': failWith(408, 'The request timed out.', 'server_error', 'timeout'),
  '409': failWith(409, 'The object is locked by another request.', 'conflict_error', 'lock_timeout'),
  '498': failWith(498, 'No flexible capacity is free at the moment.', 'server_error', 'capacity_exceeded'),
  '500': failWith(500, 'The server had an error while processing the request.', 'server_error', null),
  '502': failWith(502, 'The upstream server gave no valid reply.', 'server_error', null),
  '503': failWith(503, 'The server is overloaded.', 'service_unavailable_error', 'server_is_overloaded'),
  '504': failWith(504, 'The upstream server gave no reply in time.', 'server_error', null),
  '529': () =>
    fail(sendJson(529, '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}')),
  'html-502': () => fail(sendHtml(502, '502 Bad Gateway')),
  hang: () => fail({ type: 'hang' }),
  drip: ({ argument }) =>
    fail({
      type: 'drip',
      everyMs: Math.max(1, numberOr(argument, 500)),
      thenAfterMs: Number.POSITIVE_INFINITY,
      body: '',
    }),
  reset: () => fail({ type: 'reset' }),
  'reset-mid-body': (scene) => fail({ type: 'cut', body: answerBody(scene, 'whole') }),
  truncated: (scene) => {
    const body = answerBody(scene, 'whole');
    return fail(sendJson(200, body.slice(0, Math.floor(body.length / 2))));
  },
  html: () => fail(sendHtml(200, 'Please sign in')),
  'no-body': () => fail(sendJson(200, '')),
  empty: failAnswerWith('without_choices'),
  'no-content': failAnswerWith('without_content'),
  'no-usage': answerWith('without_usage'),
  'error-in-200': ({ argument }) => {
    const error = {
      code: numberOr(argument, 502),
      message: 'Provider returned error',
      metadata: { provider_name: 'Simulated' },
    };
    return fail(sendJson(200, JSON.stringify({ error })));
  },
  nul: answerWith('with_nul'),
  surrogate: answerWith('with_lone_surrogate'),
  length: failAnswerWith('half'),
  'content-filter': failAnswerWith('filtered'),
  shuffled: answerWith('shuffled'),
  'missing-index': answerWith('index_missing'),
  'unknown-index': answerWith('index_unknown'),
  'doubled-index': answerWith('index_doubled'),
  'item-error': answerWith('item_error'),
  'content-filter-400': () =>
    turnAway(
      sendJson(
        400,
        JSON.stringify({
          error: {
            message: 'The content management policy of this deployment blocked the prompt.',
            type: null,
            param: 'prompt',
            code: 'content_filter',
            status: 400,
            innererror: {
              code: 'ResponsibleAIPolicyViolation',
              content_filter_result: { violence: { filtered: true, severity: 'high' } },
            },
          },
        }),
      ),
    ),
  refuse: failAnswerWith('refused'),
  'too-long': ({ inquiry }) => {
    const limit = Math.max(1, Math.floor(inquiry.promptTokens / 2));
    const message = `This model's maximum context length is ${limit} tokens, but the messages came to ${inquiry.promptTokens} tokens.`;
    return refuse(invalidRequest(message, 'messages', 'context_length_exceeded'));
  },
  'too-large-413': () => turnAway(sendHtml(413, '413 Request Entity Too Large')),
  'unprocessable-422': () =>
    turnAway(
      sendJson(
        422,
        '{"detail":[{"type":"string_type","loc":["body","messages",0,"content"],"msg":"Input should be a valid string","input":null}]}',
      ),
    ),
  'bad-request': () => refuse(invalidRequest("Invalid value for 'messages'.", 'messages', 'invalid_value')),
  unauthorized: ({ key, argument }) => refuse(wrongKey(key, argument === 'full' ? 'whole' : 'ends')),
  forbidden: () =>
    refuse(refusal(403, 'This key has no permission for the model.', 'permission_error', null)),
  'payment-required': () =>
    turnAway(
      sendJson(402, '{"error":{"code":402,"message":"Insufficient credits. Add more and try again."}}'),
    ),
  'model-not-found': ({ inquiry }) => refuse(modelNotFound(inquiry.model)),
  redirect: ({ port }) => {
    const location = `http://localhost:${port}${REDIRECT_PATH}`;
    return turnAway({
      type: 'send',
      status: 307,
      contentType: 'text/plain',
      body: '',
      headers: { location },
    });
  },
};

/** Where `redirect` points: the same server by another name, so that followers show in the books. */
export const REDIRECT_PATH = '/redirected/v1/chat/completions';

export function play(name: BehaviourName, scene: Scene): Plan {
  return (name in PLAYS ? PLAYS[name as keyof typeof PLAYS] : PLAYS.ok)(scene);
}

function answerWith(variant: AnswerVariant): Play {
  return (scene) => answer(scene, variant);
}

function answer(scene: Scene, variant: AnswerVariant): Plan & { admitted: true } {
  const reply = sendJson(200, answerBody(scene, variant));
  return { admitted: true, answers: true, tellsUsage: variant !== 'without_usage', reply };
}

/** Status 200 and billed, but nothing to keep. */
function failAnswerWith(variant: AnswerVariant): Play {
  return (scene) => ({ ...answer(scene, variant), answers: false });
}

function answerBody({ inquiry, stamp, settings }: Scene, variant: AnswerVariant): string {
  const body = JSON.stringify(inquiry.render(variant, stamp));
  const missing = settings.responseBytes - body.length;
  return missing > 0 ? `${body.slice(0, -1)},"padding":"${'x'.repeat(missing)}"}` : body;
}

function fail(reply: Reply): Plan {
  return { admitted: true, answers: false, tellsUsage: false, reply };
}

/** The server broke after it let the call in; the body is OpenAI's in every dialect. */
function failWith(status: number, message: string, type: string, code: string | null): Play {
  const reply = sendJson(status, JSON.stringify({ error: { message, type, param: null, code } }));
  return () => fail(reply);
}

function refuse(reason: Refusal): Plan {
  return { admitted: false, refusal: reason };
}

function turnAway(reply: Reply): Plan {
  return { admitted: false, reply };
}

/** A throttle without a cause in the books: some number above a limit. */
function scriptedThrottle({ inquiry, settings }: Scene, told: ToldWait | null): Refusal {
  const limit = settings.rpm ?? 500;
  return throttled(inquiry.model, { limitedBy: 'requests', limit, used: limit, requested: 1 }, told);
}

/** The wait is told whatever the options say: it is what this behaviour is for. */
function holdBack(scene: Scene): Plan {
  const { document, nowMs, argument } = scene;
  document.heldUntilMs ??= nowMs + numberOr(argument, 1) * 1_000;
  const waitMs = document.heldUntilMs - nowMs;
  if (waitMs <= 0) return answer(scene, 'whole');
  return refuse(scriptedThrottle(scene, { waitMs, inHeader: true }));
}
