/** Single tasks: handed in, asked for, cancelled, retried. */
import { ACCEPTED, NEW_TASK, TASK } from '../schemas.js';
import type { TaskService } from '../service.js';
import type { Submission } from '../task-intake.js';
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

const SUBMIT: RouteDocs = {
  summary: 'Hand in a task',
  takesIdempotencyKey: true,
  answers: {
    200: { description: 'It was handed in before: the first answer again.', schema: ACCEPTED },
    202: { description: 'Taken: it is on the disk. Location says where to ask for it.', schema: ACCEPTED },
    ...problemAnswers(400, 409, 413, 422, 503),
  },
};
const GET: RouteDocs = {
  summary: 'Ask for a task',
  answers: {
    200: {
      description: 'The task; while it is open, Retry-After says in how many seconds to ask again.',
      schema: TASK,
    },
    ...problemAnswers(404, 410),
  },
};
const CANCEL: RouteDocs = {
  summary: 'Cancel an open task',
  answers: { 204: { description: 'Cancelled.' }, ...problemAnswers(404, 409, 410) },
};
const RETRY: RouteDocs = {
  summary: 'Send a failed task again, with all its attempts',
  answers: { 202: { description: 'Open again.', schema: ACCEPTED }, ...problemAnswers(404, 409, 410) },
};

export function taskRoutes(service: TaskService): AddRoutes {
  return (app) => {
    app.post<{ Body: Submission }>(
      '/v1/tasks',
      { schema: { body: NEW_TASK }, config: { docs: SUBMIT } },
      async (request, reply) => {
        const { body, bodyText } = request;
        const { id, isRepeated } = await service.submit(body, bodyText, submissionHeaders(request));
        return sendAccepted(reply, '/v1/tasks', id, !isRepeated);
      },
    );
    app.get<OfId>('/v1/tasks/:id', byId(GET), async ({ params }, reply) => {
      const { json, retryAfterSeconds } = await service.task(params.id);
      if (retryAfterSeconds !== null) reply.header('retry-after', retryAfterSeconds);
      return sendJson(reply, json);
    });
    app.delete<OfId>('/v1/tasks/:id', byId(CANCEL), async ({ params }, reply) => {
      await service.cancelTask(params.id);
      return reply.code(204).send();
    });
    app.post<OfId>('/v1/tasks/:id/retry', byId(RETRY), async ({ params: { id } }, reply) => {
      await service.retryTask(id);
      return sendAccepted(reply, '/v1/tasks', id, true);
    });
  };
}
