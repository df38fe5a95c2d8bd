/** The HTTP side: bodies in, problems out, who may come in, and the routes. */
import type { Readable } from 'node:stream';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { parseForeignJson, UnusualShape } from '../core/json.js';
import { OpenApi } from './openapi.js';
import { nothingHere, Problem, problemOf, unprocessable } from './problem.js';
import { healthRoutes } from './routes/health-routes.js';
import type { AddRoutes } from './routes/route.js';
import { JSONL_TYPES } from './routes/run-routes.js';
import { LONGEST_ID } from './schemas.js';
import { createAccessCheck } from './tokens.js';

export interface HttpServerOptions {
  readonly routes: readonly AddRoutes[];
  /** Empty: who reaches the service may use it. */
  readonly tokens: readonly string[];
  readonly mostBodyBytes: number;
  /** Throws where the store does not answer. */
  readonly probe: () => Promise<unknown>;
  /** Told of what nobody but us can mend. */
  readonly onUnexpected: (error: unknown) => void;
}

/** A connection on which nothing moves for so long is closed. */
const IDLE_MS = 120_000;

export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const { routes, tokens, mostBodyBytes, probe, onUnexpected } = options;
  const app = Fastify({
    bodyLimit: mostBodyBytes,
    connectionTimeout: IDLE_MS,
    // A run may be sent for longer than any bound on a whole request.
    requestTimeout: 0,
    forceCloseConnections: 'idle',
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: LONGEST_ID },
    ajv: {
      customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: true, allErrors: true },
    },
    frameworkErrors: (error, _, reply) => sendProblem(problemOf(error), reply as unknown as FastifyReply),
  });
  const openApi = new OpenApi();
  const checkAccess = createAccessCheck(tokens);
  app.decorateRequest('bodyText', '');
  const methods = new Map<string, readonly string[]>();
  app.addHook('onRoute', (route) => {
    openApi.add(route);
    methods.set(route.url, (methods.get(route.url) ?? []).concat(route.method));
  });
  app.addHook('onRequest', async ({ routeOptions, headers }) => {
    if (routeOptions.config.docs?.isPublic !== true) checkAccess(headers);
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer' },
    async (request: FastifyRequest, body: Buffer) => {
      // Some clients say that of everything that they post.
      if (body.length === 0 && request.routeOptions.schema?.body === undefined) return undefined;
      refuseOtherType(request, 'application/json');
      request.bodyText = utf8(body);
      return parseJson(request.bodyText);
    },
  );
  // A run is read as it comes.
  app.addContentTypeParser([...JSONL_TYPES], async (request: FastifyRequest, body: Readable) => {
    refuseOtherType(request, JSONL_TYPES[0]);
    return body;
  });
  app.setErrorHandler((error, request, reply) => {
    const problem = hasOtherType(error) ? otherType(request) : problemOf(error);
    if (problem.status === 500) onUnexpected(error);
    return sendProblem(problem, reply);
  });
  app.setNotFoundHandler(({ method }, reply) => sendProblem(nothingHere(method), reply));
  for (const add of [...routes, healthRoutes(probe, () => openApi.document())]) add(app);
  for (const [path, allowed] of [...methods]) refuseOtherMethods(app, path, allowed);
  return app;
}

/** RFC 9110, 15.5.6. Whoever may not come in is not told which there are. */
function refuseOtherMethods(app: FastifyInstance, url: string, allowed: readonly string[]): void {
  const refuse = async ({ method }: FastifyRequest, reply: FastifyReply): Promise<never> => {
    reply.header('allow', allowed.join(', '));
    throw new Problem(405, `This address takes ${allowed.join(' and ')}, not ${method}.`, { code: 'method' });
  };
  const method = app.supportedMethods.filter((each) => !allowed.includes(each));
  app.route({ method, url, onRequest: refuse, handler: refuse });
}

function sendProblem(problem: Problem, reply: FastifyReply): FastifyReply {
  const { retryAfterSeconds } = problem.options;
  if (retryAfterSeconds !== undefined) reply.header('retry-after', retryAfterSeconds);
  if (problem.status === 401) reply.header('www-authenticate', 'Bearer');
  return reply
    .code(problem.status)
    .header('content-type', 'application/problem+json')
    .send(JSON.stringify(problem.body()));
}

/** @throws Problem 404, 415 */
function refuseOtherType(request: FastifyRequest, given: string): void {
  const isPacked = given === 'application/json' && request.headers['content-encoding'] !== undefined;
  if (request.is404 || isPacked || bodyTypeOf(request) !== given) throw otherType(request);
}

/** Of what no route takes; others are refused by `refuseOtherType`. */
function hasOtherType(error: unknown): boolean {
  return (error as { readonly code?: unknown }).code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE';
}

function otherType(request: FastifyRequest): Problem {
  if (request.is404) return nothingHere(request.method);
  const isPacked = request.headers['content-encoding'] !== undefined;
  const wanted = `${bodyTypeOf(request)}${isPacked ? ', as it is: without Content-Encoding' : ''}`;
  return new Problem(415, `This route takes Content-Type ${wanted}.`, { code: 'media_type' });
}

function bodyTypeOf({ routeOptions }: FastifyRequest): string {
  return routeOptions.config.docs?.bodyType ?? 'application/json';
}

const decoder = new TextDecoder('utf-8', { fatal: true });

function utf8(body: Buffer): string {
  try {
    return decoder.decode(body);
  } catch {
    throw new Problem(400, 'The body is not valid UTF-8.', { code: 'not_json' });
  }
}

function parseJson(text: string): unknown {
  if (text === '') throw new Problem(400, 'The body is empty.', { code: 'not_json' });
  try {
    return parseForeignJson(text);
  } catch (error) {
    if (error instanceof UnusualShape) throw unprocessable('', error.message);
    // What the parser says differs from version to version, and quotes what may be secret.
    throw new Problem(400, 'The body is not JSON.', { code: 'not_json' });
  }
}
