/** What goes wrong, in the words of HTTP: problem details (RFC 9457). Never a stack, never a path of this machine. */
import { EXIT_CODES, LlmBatchError } from '../core/errors.js';

export interface ProblemOfField {
  /** Dotted path in the body, or the name of a header or parameter; empty for the whole. */
  readonly field: string;
  readonly message: string;
}

export interface ProblemOptions {
  /** Stable, for programs. */
  readonly code: string;
  readonly errors?: readonly ProblemOfField[];
  readonly retryAfterSeconds?: number;
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  410: 'Gone',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Content',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

export class Problem extends Error {
  constructor(
    readonly status: number,
    detail: string,
    readonly options: ProblemOptions,
  ) {
    super(detail);
    this.name = 'Problem';
  }

  body(): object {
    const { code, errors } = this.options;
    return {
      type: 'about:blank',
      title: TITLES[this.status] ?? 'Error',
      status: this.status,
      detail: this.message,
      code,
      ...(errors === undefined ? {} : { errors }),
    };
  }
}

export function unprocessable(field: string, message: string): Problem {
  return new Problem(422, field === '' ? message : `${field}: ${message}`, {
    code: 'invalid_body',
    errors: [{ field, message }],
  });
}

/** As long as a disk takes to be cleared, or a backup to end: nobody knows. */
export const STORE_RETRY_SECONDS = 10;

/** Errors of fastify's own that a client causes. */
const OF_FASTIFY: Readonly<Record<string, readonly [status: number, code: string, detail: string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: [413, 'too_large', 'The body is larger than this service takes.'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [400, 'length', 'The body is not as long as its Content-Length says.'],
  FST_ERR_BAD_URL: [400, 'bad_url', 'The path is no valid URL.'],
};

interface FastifyLikeError {
  readonly code?: unknown;
  readonly statusCode?: unknown;
  readonly validation?: readonly {
    readonly instancePath: string;
    readonly keyword: string;
    readonly params: Readonly<Record<string, unknown>>;
    readonly message?: string;
  }[];
  readonly validationContext?: string;
}

export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof LlmBatchError) return problemOfOwn(error);
  const { code, statusCode, validation } = error as FastifyLikeError;
  if (validation !== undefined) return problemOfShape(error as FastifyLikeError);
  if (code === 'FST_ERR_MAX_PARAM_LENGTH') return nothingHere();
  const known = OF_FASTIFY[String(code)];
  if (known !== undefined) return new Problem(known[0], known[2], { code: known[1] });
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
    return new Problem(statusCode, 'The request cannot be read.', { code: 'bad_request' });
  }
  return new Problem(500, 'Something went wrong in the service itself.', { code: 'internal' });
}

function problemOfOwn(error: LlmBatchError): Problem {
  if (error.exitCode === EXIT_CODES.usage) {
    return new Problem(422, error.message, { code: error.code.toLowerCase() });
  }
  // Its message names files of this machine.
  const detail =
    error.code === 'STORE_FULL'
      ? 'The disk of the store is full; nothing of this was taken.'
      : 'The store cannot take it now; nothing of this was taken.';
  return new Problem(503, detail, {
    code: error.code.toLowerCase(),
    retryAfterSeconds: STORE_RETRY_SECONDS,
  });
}

function problemOfShape({ validation = [], validationContext }: FastifyLikeError): Problem {
  // An id that cannot be one.
  if (validationContext === 'params') return nothingHere();
  const errors = validation.map(({ instancePath, keyword, params, message = 'is wrong' }) => {
    const path = instancePath.split('/').slice(1).map(unescaped);
    const extra = params['additionalProperty'] ?? params['missingProperty'];
    if (typeof extra === 'string') path.push(extra);
    return { field: path.join('.'), message: SHAPE_WORDS[keyword]?.(params) ?? message };
  });
  const [first] = errors;
  const whole = validationContext === 'querystring' ? 'The query' : 'The body';
  const part = validationContext === 'querystring' ? 'Query parameter ' : '';
  const detail =
    first === undefined
      ? `${whole} is wrong.`
      : `${first.field === '' ? whole : part + first.field} ${first.message}.`;
  return new Problem(422, detail, { code: 'invalid_body', errors });
}

/** By keyword of JSON Schema, where the validator's own words are those of programmers. */
const SHAPE_WORDS: Readonly<Record<string, (params: Readonly<Record<string, unknown>>) => string>> = {
  additionalProperties: () => 'is unknown',
  enum: ({ allowedValues }) => `must be one of ${(allowedValues as readonly unknown[]).join(', ')}`,
  minimum: ({ limit }) => `must be at least ${limit}`,
  maximum: ({ limit }) => `must be at most ${limit}`,
  // Nothing is asked to be longer than that.
  minLength: () => 'must not be empty',
  type: ({ type }) => `must be ${TYPE_WORDS[String(type)] ?? String(type)}`,
};

const TYPE_WORDS: Readonly<Record<string, string>> = {
  object: 'an object',
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
};

/** @param method that was asked with; absent where it makes no difference */
export function nothingHere(method?: string): Problem {
  const what = method === undefined ? '' : ` for ${method}`;
  return new Problem(404, `There is nothing at this address${what}; GET /openapi.json says what there is.`, {
    code: 'not_found',
  });
}

/** Of JSON Pointer (RFC 6901). */
function unescaped(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}
