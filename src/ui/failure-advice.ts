/** What each kind of failure means to a user and what to do about it: the one table that every page shows. */
import type { FailureKind } from '../core/failure.js';

export interface FailureAdvice {
  /** One clause: what happened. */
  readonly meaning: string;
  /** One clause, imperative: the way out. */
  readonly advice: string;
  /** False: sending the same request again cannot end well without a change; default true. */
  readonly worthRetrying?: boolean;
}

export const FAILURE_ADVICE: Readonly<Record<FailureKind, FailureAdvice>> = {
  rate_limited: {
    meaning: 'the server throttled these for longer than --max-wait',
    advice: 'lower --rpm or --tpm, or raise --max-wait',
  },
  overloaded: {
    meaning: 'the server was overloaded at every attempt',
    advice: 'wait until it has recovered, or lower --concurrency',
  },
  network: {
    meaning: 'the connection failed at every attempt',
    advice: 'check the connection, the proxy and --base-url',
  },
  timeout: {
    meaning: 'no complete answer came within --timeout',
    advice: 'raise --timeout, or ask for shorter answers with --param max_tokens=N',
  },
  bad_output: {
    meaning: 'the answers were empty or not what was asked for',
    advice: 'look at the example; a clearer prompt or another model may help',
  },
  truncated: {
    meaning: 'the answers were cut off at the output limit; the part there was is in the errors file',
    advice: 'give these documents more room (--param max_tokens=N) in a run of their own',
    worthRetrying: false,
  },
  content_filtered: {
    meaning: "the provider's content filter held the answers back",
    advice: 'change these documents or the prompt, or use another provider',
    worthRetrying: false,
  },
  refused: {
    meaning: 'the model refused to answer',
    advice: 'change these documents or the prompt, or use another model',
    worthRetrying: false,
  },
  invalid_request: {
    meaning: 'the server does not accept these requests',
    advice: 'read the message, mend the documents or the settings, and run them again',
    worthRetrying: false,
  },
  too_large: {
    meaning: "these documents are larger than the model's context or the whole token limit",
    advice: 'shorten or split them, use a model with a longer context, lower max_tokens, or raise --tpm',
    worthRetrying: false,
  },
  quota_exhausted: {
    meaning: 'the account has no credit or quota left',
    advice: 'add credit or raise the limit at the provider, then resume',
  },
  auth: {
    meaning: 'the server does not accept the API key',
    advice: 'set a key that is valid for this model (OPENAI_API_KEY or --api-key-env), then resume',
  },
  not_found: {
    meaning: 'the server knows no such model or address',
    advice: 'check --model and --base-url',
  },
  poison: {
    meaning: 'the program went down each time these were in flight',
    advice: 'look at the documents; they may be too large to handle',
    worthRetrying: false,
  },
};

/** Beside the kind, what is known of a failure. */
export interface AdvisedFailure {
  readonly kind: FailureKind;
  readonly code?: string | null | undefined;
  /** A parameter's name stands first among its words in quotes. */
  readonly message: string;
}

/** For what a code of the program's own tells. What a proxy does to all calls is none of the key's doing. */
const ADVICE_BY_CODE: Readonly<Record<string, FailureAdvice>> = {
  PROXY_AUTH: {
    meaning: 'the proxy wants a user name and a password',
    advice: 'set HTTPS_PROXY (or HTTP_PROXY) to http://USER:PASSWORD@host:port, then resume',
  },
  PROXY_REFUSED: {
    meaning: 'the proxy does not allow calls to this server',
    advice: 'have the server allowed there, or name it in NO_PROXY, then resume',
  },
  BACKGROUND_UNSUPPORTED: {
    meaning: 'the server makes no responses in the background',
    advice: 'run it again without --background',
  },
};

/** The advice for one failure: for a proxy's refusal and a refused parameter, what to do about that. */
export function adviceOn({ kind, code, message }: AdvisedFailure): Required<FailureAdvice> {
  const advice = { worthRetrying: true, ...(ADVICE_BY_CODE[code ?? ''] ?? FAILURE_ADVICE[kind]) };
  const name = /'([a-z_.]{1,40})'/.exec(message)?.[1];
  if (name === undefined || (code !== 'unsupported_parameter' && code !== 'unsupported_value')) return advice;
  if (name === 'max_tokens') {
    const words = 'give the cap by the name that this model knows: --param max_completion_tokens=N';
    return { ...advice, advice: `${words} in place of max_tokens` };
  }
  const reason = code === 'unsupported_value' ? 'takes its own value alone' : 'does not take it';
  return { ...advice, advice: `leave ${name} out of --param and of the documents: this model ${reason}` };
}
