/**
 * What a call can be made to meet. A document asks for it with `[[simulate:NAME]]` or `[[simulate:NAME ARG]]`
 * in a user message; seeded faults and outages use the same names.
 *
 * Every name also exists as `NAME-then-ok`, where ARG is the number of calls of the document that meet it (2
 * when not given) before it is answered.
 */

/** One line each, for `--help` and documentation. */
export const BEHAVIOURS = {
  ok: 'is answered as if there were no directive',
  slow: 'is answered after ARG milliseconds (1000)',
  'slow-body': 'gets headers at once, blank lines for ARG milliseconds (1000), then the answer',
  '429': 'is throttled, always',
  'retry-after': 'is throttled with Retry-After until ARG seconds (1) have passed since its first call',
  'slow-down': 'is told to slow down (429, code slow_down)',
  'insufficient-quota': 'meets an empty account (429, code insufficient_quota)',
  'request-too-large-429': 'is larger than the whole tokens-per-minute limit (429 "Request too large")',
  '408': 'meets a request timeout (408)',
  '409': 'meets a lock conflict (409)',
  '498': 'meets exhausted flexible capacity (498)',
  '500': 'meets a server error (500)',
  '502': 'meets a bad gateway (502)',
  '503': 'meets an overloaded server (503)',
  '504': 'meets a gateway timeout (504)',
  '529': 'meets an overloaded server (529, overloaded_error)',
  'html-502': "meets a gateway's HTML page (502)",
  hang: 'is accepted and never answered',
  drip: 'gets headers with status 200, then one blank every ARG milliseconds (500) for ever',
  reset: 'has its connection reset before any headers',
  'reset-mid-body': 'has its connection closed in the middle of the body',
  truncated: 'gets a JSON body cut in the middle, with the content-length of what is left',
  html: 'gets an HTML page with status 200',
  'no-body': 'gets status 200 and no body at all',
  empty: 'gets an answer without choices',
  'no-content': 'gets an answer with empty content',
  'no-usage': 'gets an answer that does not say its tokens',
  'error-in-200': 'gets an error object with numeric code ARG (502) under status 200',
  nul: 'gets a NUL character in its answer',
  surrogate: 'gets a lone surrogate in its answer',
  length: 'gets half an answer, finish_reason length, or half a vector',
  'content-filter': 'gets no answer, finish_reason content_filter',
  shuffled: 'gets the vectors of its call in another order',
  'missing-index': 'gets no vector in the answer to its call',
  'unknown-index': 'gets its vector under an index that nobody has',
  'doubled-index': 'gets two vectors',
  'item-error': 'gets an error in the answer to a call of several requests (/batch)',
  'content-filter-400': 'is refused by the content filter before the model (400)',
  refuse: "gets the model's refusal",
  'too-long': "is longer than the model's context (400, context_length_exceeded)",
  'too-large-413': 'is too large for the proxy (413, an HTML page)',
  'unprocessable-422': 'fails validation (422, {detail: […]})',
  'bad-request': 'is refused as invalid (400)',
  unauthorized: 'is refused for its key (401, part of the key echoed; with ARG full, all of it)',
  forbidden: 'is refused for lack of permission (403)',
  'payment-required': 'meets an account without credits (402)',
  'model-not-found': 'names a model that does not exist (404)',
  redirect: 'is sent to another origin (307)',
  'line-missing': 'is run, but in no file of its batch (a call is answered)',
  'line-malformed': 'has its line in the file of its batch cut in the middle (a call is answered)',
  'line-doubled': 'has its line in the file of its batch twice (a call is answered)',
  'line-expired': 'is not run before its batch expires (a call is answered)',
} as const satisfies Record<string, string>;

export type BehaviourName = keyof typeof BEHAVIOURS;

export interface Directive {
  readonly name: BehaviourName;
  readonly argument: string | null;
  /** How many calls of the document meet it before it is answered; Infinity for all. */
  readonly firstCalls: number;
}

const THEN_OK = '-then-ok';
const MARK = '[[simulate:';
const PATTERN = /\[\[simulate:([^\]\s]*)(?:\s+([^\]]*?))?\s*\]\]/;

/** Reads `NAME`, `NAME ARG`, `NAME-then-ok` or `NAME-then-ok COUNT`; null for a name that does not exist. */
export function parseDirective(text: string): Directive | null {
  const [name = '', argument = null] = text.trim().split(/\s+/, 2);
  if (isBehaviourName(name)) return { name, argument, firstCalls: Number.POSITIVE_INFINITY };
  if (!name.endsWith(THEN_OK)) return null;
  const base = name.slice(0, -THEN_OK.length);
  if (!isBehaviourName(base)) return null;
  return { name: base, argument: null, firstCalls: numberOr(argument, 2) };
}

/**
 * The first directive in a document's user messages: undefined when there is none, and the text found when it
 * names nothing known, so that a slip of the pen is told and not passed over.
 */
export function findDirective(userTexts: readonly string[]): Directive | string | undefined {
  for (const text of userTexts) {
    const found = mayDirect(text) ? PATTERN.exec(text) : null;
    if (found === null) continue;
    const asked = [found[1], found[2]].filter((part) => part !== undefined && part !== '').join(' ');
    return parseDirective(asked) ?? asked;
  }
  return undefined;
}

/** Whether a text may hold a directive. */
export function mayDirect(text: string): boolean {
  return text.includes(MARK);
}

/** A directive's argument as a number of zero or more, or what holds without it. */
export function numberOr(argument: string | null, otherwise: number): number {
  if (argument === null || argument === '') return otherwise;
  const value = Number(argument);
  return Number.isFinite(value) && value >= 0 ? value : otherwise;
}

function isBehaviourName(name: string): name is BehaviourName {
  return Object.hasOwn(BEHAVIOURS, name);
}
