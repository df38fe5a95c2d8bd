/** What routes share: the parts that they are made of, and how they say what they answer. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { TRACEPARENT } from '../../core/trace-work.js';
import { Problem } from '../problem.js';
import { ID_PARAMETER } from '../schemas.js';
import type { SubmissionHeaders } from '../service.js';

/** For the OpenAPI document; kept with the route. */
export interface RouteDocs {
  readonly summary: string;
  /** By status: what the answer holds; null: nothing. */
  readonly answers: Readonly<Record<number, AnswerDocs>>;
  /** Of a body that is not JSON. */
  readonly bodyType?: string;
  readonly takesIdempotencyKey?: boolean;
  /** Open to everybody, without a token. */
  readonly isPublic?: boolean;
}

export interface AnswerDocs {
  readonly description: string;
  readonly schema?: object;
  /** Default: JSON. */
  readonly mediaType?: string;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    docs?: RouteDocs;
  }
  interface FastifyRequest {
    /** A JSON body as it came. */
    bodyText: string;
  }
}

/** Adds its routes to the service; further ones are added beside it, in files of their own. */
export type AddRoutes = (app: FastifyInstance) => void;

export function problemAnswers(...statuses: readonly number[]): Record<number, AnswerDocs> {
  const described: Readonly<Record<number, string>> = {
    400: 'Not JSON, or an odd header.',
    409: 'The state of things does not allow it, or the Idempotency-Key was used for another body.',
    410: 'It has lived its time and was removed.',
    404: 'There is none with this id.',
    413: 'Larger than the service takes.',
    422: 'A field is unknown or wrong; errors names it.',
    503: 'The backlog or the disk is full, and nothing was taken; Retry-After says when to try again.',
  };
  const mediaType = 'application/problem+json';
  return Object.fromEntries(
    statuses.map((status) => [status, { description: described[status] ?? '', mediaType }]),
  );
}

/** As long as clients make them: a UUID has 36. */
const LONGEST_KEY = 255;

/** @throws Problem 400 */
export function submissionHeaders({ headers }: FastifyRequest): SubmissionHeaders {
  const key = headers['idempotency-key'];
  const isKey = typeof key === 'string' && /^[\x21-\x7e]+$/.test(key) && key.length <= LONGEST_KEY;
  if (key !== undefined && !isKey) {
    throw new Problem(400, `Idempotency-Key must be 1 to ${LONGEST_KEY} visible ASCII characters.`, {
      code: 'idempotency_key',
      errors: [{ field: 'Idempotency-Key', message: 'is no key' }],
    });
  }
  const { traceparent } = headers;
  return {
    idempotencyKey: isKey ? key : null,
    traceparent: typeof traceparent === 'string' && TRACEPARENT.test(traceparent) ? traceparent : null,
  };
}

/** Of a route about one thing. */
export interface OfId {
  readonly Params: { readonly id: string };
}

/** What a route about one thing is declared with. */
export function byId(docs: RouteDocs, more: object = {}) {
  return { schema: { params: ID_PARAMETER, ...more }, config: { docs } };
}

/** What was handed in, now or before, and where to ask for it. @param isNew answered with 202, else with 200 */
export function sendAccepted(reply: FastifyReply, path: string, id: string, isNew: boolean): FastifyReply {
  reply.code(isNew ? 202 : 200).header('location', `${path}/${id}`);
  return sendJson(reply, JSON.stringify({ id, status: 'pending' }));
}

export function sendJson(reply: FastifyReply, json: string): FastifyReply {
  return reply.header('content-type', 'application/json; charset=utf-8').send(json);
}
