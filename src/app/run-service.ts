/** The service: what it listens with, what it drains with, and what ends with it. */
import type { Settings } from '../config/settings.js';
import { WOKEN } from '../core/clock.js';
import { usageError } from '../core/errors.js';
import type { StopRequests } from '../core/stop-requests.js';
import type { RunSettings } from '../runs/run-settings.js';
import type { WorkOptions } from '../runs/work.js';
import { expireInTurn } from '../server/expiry.js';
import { createHttpServer } from '../server/http-server.js';
import { allRoutes } from '../server/routes/all-routes.js';
import { RunWatch } from '../server/run-watch.js';
import { TaskService } from '../server/service.js';
import { readTokens } from '../server/tokens.js';
import { AddressGuard } from '../server/webhooks/address-guard.js';
import { WebhookOutbox } from '../server/webhooks/outbox.js';
import { readSecrets } from '../server/webhooks/signature.js';
import type { Store } from '../store/store.js';
import type { CommandContext } from './context.js';
import { listen, refuseOpenDoor } from './listen.js';
import { ownStore, withStore } from './open-store.js';
import { startWorker } from './start-worker.js';
import { measureRuns, traceRuns } from './telemetry.js';

export interface ServeOptions {
  readonly settings: Settings;
  /** Of the runs that the service makes. */
  readonly runSettings: RunSettings;
  readonly tell: WorkOptions['tell'];
  /** @throws LlmBatchError for a run that names servers or files that this user has not agreed to */
  readonly checkTrust: (settings: RunSettings) => Promise<void>;
  /** Told once it listens. */
  readonly onListening: (url: string) => void;
  /** For people: what they may not have expected. */
  readonly notice: (text: string) => void;
}

/** Serves until it is asked to stop. @throws LlmBatchError SERVE_* (exit 2), STORE_* (exit 5) */
export function runService(context: CommandContext, options: ServeOptions): Promise<void> {
  const { settings } = options;
  const tokens = readTokens(context.takeSecret('LLM_BATCH_SERVE_TOKENS'));
  const secrets = webhookSecrets(context.takeSecret('LLM_BATCH_WEBHOOK_SECRET'));
  refuseOpenDoor(settings, tokens);
  return withStore(context, settings, 'write', (store) =>
    serveStore(context, store, options, tokens, secrets),
  );
}

async function serveStore(
  context: CommandContext,
  store: Store,
  { settings, runSettings, tell, checkTrust, onListening, notice }: ServeOptions,
  tokens: readonly string[],
  secrets: readonly Buffer[],
): Promise<void> {
  const { clock, random, environment, interrupts } = context;
  if (settings.drain) await ownStore(context, store, null);
  const ending = new AbortController();
  const submitted = new Set<() => void>();
  const tracing = await traceRuns(context);
  const measuring = await measureRuns(store, secrets.length > 0);
  const guard = new AddressGuard(settings.allowWebhookHosts ?? []);
  const webhooks = new WebhookOutbox({ store, guard, secrets, clock, random, trace: tracing.asking });
  const service = await TaskService.open({
    store,
    settings: runSettings,
    mostOpen: settings.maxBacklog,
    ttlMs: settings.ttlMs,
    maxLineBytes: settings.maxLineBytes,
    clock,
    refuseWebhook: (url) => (secrets.length === 0 ? NO_SECRET : guard.refuse(url)),
    trace: tracing.asked,
    onWork: () => {
      for (const look of submitted) look();
    },
  });
  if (secrets.length > 0 && goesThroughProxy(environment)) notice(PROXY_NOTICE);
  const app = createHttpServer({
    routes: allRoutes(service, new RunWatch(store, clock), measuring.render),
    tokens,
    mostBodyBytes: settings.maxLineBytes,
    probe: () => store.served.nextWebhookMs(),
    onUnexpected: (error) => notice(`An answer failed by our own fault: ${String(error)}`),
  });
  const stopListening = interrupts.subscribe(() => ending.abort(WOKEN));
  const parts: Promise<unknown>[] = [];
  try {
    onListening(await listen(app, settings));
    parts.push(expireInTurn({ store, ttlMs: settings.ttlMs, clock, signal: ending.signal }));
    if (secrets.length > 0) parts.push(webhooks.run());
    if (settings.drain) {
      const sending = startWorker(context, {
        ...{ settings, store, runId: null, concurrency: null, idleExitMs: null, checkTrust },
        stop: eitherStop(interrupts, ending.signal),
        onSubmitted(look) {
          submitted.add(look);
          return () => submitted.delete(look);
        },
        tell(event, run) {
          tell(event, run);
          measuring.tell(event);
          tracing.tell(event);
          if (event.type === 'tasks_settled') webhooks.wake();
        },
      });
      parts.push(sending);
    }
    await Promise.race([...parts, aborted(ending.signal)]);
  } finally {
    ending.abort(WOKEN);
    // Whoever is in the middle of a long upload or download has as long as calls have.
    const cutOff = (): void => app.server.closeAllConnections();
    const cancelCutOff = clock.after(runSettings.pacing.graceMs, cutOff);
    const stopCutOff = interrupts.subscribe((count) => count > 1 && cutOff());
    await app.close();
    cancelCutOff();
    stopCutOff();
    await service.settled();
    webhooks.stop();
    await Promise.allSettled(parts);
    await tracing.close();
    stopListening();
  }
  // One of them may have failed, which has ended the others.
  await Promise.all(parts);
}

/** The user's wish, or the end of what this is a part of. */
function eitherStop(user: StopRequests, ended: AbortSignal): StopRequests {
  return {
    get count() {
      return Math.max(user.count, ended.aborted ? 1 : 0);
    },
    subscribe(listener) {
      const onEnd = (): void => {
        if (user.count === 0) listener(1);
      };
      ended.addEventListener('abort', onEnd, { once: true });
      const stopListening = user.subscribe(listener);
      return () => {
        ended.removeEventListener('abort', onEnd);
        stopListening();
      };
    },
  };
}

const NO_SECRET = 'cannot be used: this service has no secret to sign with';
const PROXY_NOTICE =
  'Webhooks are sent directly, not through the proxy of the environment: it would look names up itself, past the guard against inside addresses.';

function goesThroughProxy(environment: CommandContext['environment']): boolean {
  return ['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'].some(
    (name) => (environment[name] ?? '') !== '',
  );
}

function webhookSecrets(text: string | undefined): Buffer[] {
  try {
    return readSecrets(text);
  } catch (error) {
    throw usageError('SERVE_SECRET', `LLM_BATCH_WEBHOOK_SECRET ${(error as Error).message}.`);
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
