/** Whole runs: handed in as JSONL, asked for, their results, cancelled. */
import type { Readable } from 'node:stream';
import type { ResultFilter } from '../../core/result-row.js';
import { ACCEPTED, RESULTS_QUERY, RUN, RUN_QUERY } from '../schemas.js';
import type { TaskService } from '../service.js';
import type { AskedWith } from '../task-intake.js';
import {
  type AddRoutes,
  byId,
  type OfId,
  problemAnswers,
  type RouteDocs,
  sendAccepted,
  sendJson,
  submissionHeaders,
} from './route.js';

export const JSONL_TYPES = ['application/jsonl', 'application/x-ndjson', 'application/x-jsonlines'] as const;
const [JSONL] = JSONL_TYPES;

const SUBMIT: RouteDocs = {
  summary: 'Hand in a run: a document or a request a line, of any number',
  bodyType: JSONL,
  takesIdempotencyKey: true,
  answers: {
    200: { description: 'It was handed in before: the first answer again.', schema: ACCEPTED },
    202: { description: 'All of it is taken and on the disk.', schema: ACCEPTED },
    ...problemAnswers(400, 409, 422, 503),
  },
};
const GET: RouteDocs = {
  summary: 'Ask how far a run is',
  answers: { 200: { description: 'The run.', schema: RUN }, ...problemAnswers(404, 410) },
};
const RESULTS: RouteDocs = {
  summary: 'What the documents of a run came to so far, in their order, a line each',
  answers: {
    200: {
      description: 'Lines of a results or an errors file.',
      mediaType: JSONL,
      schema: { type: 'string' },
    },
    ...problemAnswers(404, 410),
  },
};
const RETRY: RouteDocs = {
  summary: 'Send the failed documents of a run again',
  answers: { 202: { description: 'They are pending.' }, ...problemAnswers(404, 409, 410) },
};
const CANCEL: RouteDocs = {
  summary: 'Cancel what is open of a run; what is answered stays',
  answers: { 204: { description: 'Cancelled.' }, ...problemAnswers(404, 409, 410) },
};

export function runRoutes(service: TaskService): AddRoutes {
  return (app) => {
    app.post<{ Body: Readable; Querystring: AskedWith }>(
      '/v1/runs',
      { schema: { querystring: RUN_QUERY }, config: { docs: SUBMIT } },
      async (request, reply) => {
        const { body, query } = request;
        const { id, isRepeated } = await service.submitRun(body, query, submissionHeaders(request));
        return sendAccepted(reply, '/v1/runs', id, !isRepeated);
      },
    );
    app.get<OfId>('/v1/runs/:id', byId(GET), async ({ params }, reply) =>
      sendJson(reply, await service.run(params.id)),
    );
    app.get<OfId & { Querystring: { readonly status: ResultFilter } }>(
      '/v1/runs/:id/results',
      byId(RESULTS, { querystring: RESULTS_QUERY }),
      async ({ params, query }, reply) =>
        reply.header('content-type', JSONL).send(await service.results(params.id, query.status)),
    );
    app.post<OfId>('/v1/runs/:id/retry', byId(RETRY), async ({ params }, reply) => {
      await service.retryRun(params.id);
      return reply.code(202).send();
    });
    app.delete<OfId>('/v1/runs/:id', byId(CANCEL), async ({ params }, reply) => {
      await service.cancelRun(params.id);
      return reply.code(204).send();
    });
  };
}
