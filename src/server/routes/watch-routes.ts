/** For those who look on: the page at the root, what feeds it, and figures for Prometheus. */
import { PassThrough } from 'node:stream';
import { renderOverviewPage } from '../../report/overview.js';
import type { RunWatch } from '../run-watch.js';
import { RUNS } from '../schemas.js';
import { type AddRoutes, type RouteDocs, sendJson } from './route.js';

/** @returns the text for Prometheus */
export type RenderMetrics = () => Promise<{ readonly contentType: string; readonly text: string }>;

const PAGE: RouteDocs = {
  summary: 'A page that shows the runs as they go',
  answers: { 200: { description: 'The page; it holds no figure itself.', mediaType: 'text/html' } },
  isPublic: true,
};
const LIST: RouteDocs = {
  summary: 'The newest runs',
  answers: { 200: { description: 'Newest first.', schema: RUNS } },
};
const EVENTS: RouteDocs = {
  summary: 'The same as server-sent events, at each change',
  answers: { 200: { description: 'One data field an event.', mediaType: 'text/event-stream', schema: RUNS } },
};
const METRICS: RouteDocs = {
  summary: 'Figures for Prometheus',
  answers: { 200: { description: 'Text format.', mediaType: 'text/plain' } },
};

export function metricsRoute(render: RenderMetrics): AddRoutes {
  return (app) => {
    app.get('/metrics', { config: { docs: METRICS } }, async (_, reply) => {
      const { contentType, text } = await render();
      return reply.header('content-type', contentType).send(text);
    });
  };
}

export function watchRoutes(watch: RunWatch): AddRoutes {
  return (app) => {
    app.get('/', { config: { docs: PAGE } }, async (_, reply) =>
      reply
        .header('content-type', 'text/html; charset=utf-8')
        .header('x-frame-options', 'DENY')
        .send(renderOverviewPage()),
    );
    app.get('/v1/runs', { config: { docs: LIST } }, async (_, reply) => sendJson(reply, await watch.look()));
    const open = new Set<PassThrough>();
    // An event stream never ends by itself: it would hold up the end of the service.
    app.addHook('preClose', async () => {
      for (const stream of open) stream.end();
    });
    app.get('/v1/events', { config: { docs: EVENTS } }, async (_, reply) => {
      const stream = new PassThrough();
      open.add(stream);
      const stopFollowing = watch.follow((json) => {
        // Who reads too slowly misses what has changed since anyhow.
        if (!stream.writableNeedDrain) stream.write(`data: ${json}\n\n`);
      });
      stream.on('close', () => {
        stopFollowing();
        open.delete(stream);
      });
      return reply
        .header('content-type', 'text/event-stream')
        .header('cache-control', 'no-store')
        .header('x-accel-buffering', 'no')
        .send(stream);
    });
  };
}
