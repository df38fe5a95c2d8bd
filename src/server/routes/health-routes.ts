/** Whether the service lives, and whether it can take work; and what it takes, as OpenAPI. */
import { Problem, STORE_RETRY_SECONDS } from '../problem.js';
import { type AddRoutes, problemAnswers, type RouteDocs, sendJson } from './route.js';

const OK = { 200: { description: 'Yes.', schema: { type: 'object' } } };
const LIVES: RouteDocs = { summary: 'Whether the process answers', answers: OK, isPublic: true };
const READY: RouteDocs = {
  summary: 'Whether the store answers, so that tasks can be taken',
  answers: { ...OK, ...problemAnswers(503) },
  isPublic: true,
};
const OPENAPI: RouteDocs = { summary: 'This document', answers: OK, isPublic: true };

/** @param probe throws where the store does not answer */
export function healthRoutes(probe: () => Promise<unknown>, openApi: () => object): AddRoutes {
  return (app) => {
    app.get('/healthz', { config: { docs: LIVES } }, async (_, reply) => sendJson(reply, '{"status":"ok"}'));
    app.get('/readyz', { config: { docs: READY } }, async (_, reply) => {
      try {
        await probe();
      } catch {
        throw new Problem(503, 'The store does not answer.', {
          code: 'store',
          retryAfterSeconds: STORE_RETRY_SECONDS,
        });
      }
      return sendJson(reply, '{"status":"ok"}');
    });
    app.get('/openapi.json', { config: { docs: OPENAPI } }, async (_, reply) =>
      sendJson(reply, JSON.stringify(openApi())),
    );
  };
}
