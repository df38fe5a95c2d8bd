/** A worker as other programs see it: traces, and figures for Prometheus on a port of its own. */
import type { RunEvent } from '../core/event.js';
import type { Store } from '../store/store.js';
import type { CommandContext } from './context.js';
import { listen, type Place, refuseOpenDoor } from './listen.js';
import { measureRuns, traceRuns } from './telemetry.js';

/** It takes no bodies. */
const MOST_BODY_BYTES = 1_024;

/**
 * @param metricsAt where it listens; null: nowhere
 * @throws LlmBatchError SERVE_TOKENS, SERVE_LISTEN (exit 2)
 */
export async function watchWorker(context: CommandContext, store: Store, metricsAt: Place | null) {
  const figures = metricsAt === null ? null : await serveFigures(context, store, metricsAt);
  const tracing = await traceRuns(context);
  return {
    /** Where the figures are; null where nobody asked for them. */
    metricsUrl: figures?.url ?? null,
    /** Takes an event of any run. */
    tell(event: RunEvent): void {
      figures?.tell(event);
      tracing.tell(event);
    },
    async close(): Promise<void> {
      await figures?.close();
      await tracing.close();
    },
  };
}

async function serveFigures(context: CommandContext, store: Store, place: Place) {
  const { createHttpServer } = await import('../server/http-server.js');
  const { metricsRoute } = await import('../server/routes/watch-routes.js');
  const { readTokens } = await import('../server/tokens.js');
  const tokens = readTokens(context.takeSecret('LLM_BATCH_SERVE_TOKENS'));
  refuseOpenDoor(place, tokens);
  const { tell, render } = await measureRuns(store, false);
  const app = createHttpServer({
    routes: [metricsRoute(render)],
    tokens,
    mostBodyBytes: MOST_BODY_BYTES,
    probe: () => store.listWork(),
    onUnexpected: () => undefined,
  });
  return { tell, url: await listen(app, place), close: () => app.close() };
}
