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
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [415, 'media_type', 'The content type is none that this route takes.'],
  FST_ERR_CTP_EMPTY_JSON_BODY: [400, 'not_json', 'The body is empty.'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [400, 'length', 'The body is not as long as its Content-Length says.'],
  FST_ERR_BAD_URL: [400, 'bad_url', 'The path is no valid URL.'],
  FST_ERR_MAX_PARAM_LENGTH: [404, 'not_found', 'There is nothing at this address.'],
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
  const errors = validation.map(({ instancePath, keyword, params, message = 'is wrong' }) => {
    const path = instancePath.split('/').slice(1).map(unescaped);
    const extra = params['additionalProperty'] ?? params['missingProperty'];
    if (typeof extra === 'string') path.push(extra);
    const words = keyword === 'additionalProperties' ? 'is unknown' : message;
    return { field: path.join('.'), message: words };
  });
  const [first] = errors;
  const where =
    validationContext === 'body' || validationContext === undefined ? '' : `${validationContext} `;
  const detail =
    first === undefined ? 'The body is wrong.' : `${where}${first.field} ${first.message}.`.trimStart();
  return new Problem(422, detail, { code: 'invalid_body', errors });
}

/** Of JSON Pointer (RFC 6901). */
function unescaped(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}
