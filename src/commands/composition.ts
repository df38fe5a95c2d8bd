/** The composition root: the only place that knows which concrete provider answers and what a lane is made of. */
import { EXIT_CODES, LlmBatchError, usageError } from '../core/errors.js';
import type { Lane } from '../engine/lane.js';
import { createLimiter } from '../limiter/limiter.js';
import type { Provider } from '../provider/provider.js';
import { type LaneSettings, lanesOf, type RunSettings } from '../runs/run-settings.js';
import type { CommandContext } from './context.js';

export interface Connection {
  readonly lanes: readonly Lane[];
  close(): Promise<void>;
}

/**
 * Checks, before anything is read or stored, that there is somebody to call.
 * @throws LlmBatchError KEY_MISSING, BASE_URL_INVALID (exit 2)
 */
export function checkConnection(settings: RunSettings, context: CommandContext): void {
  if (settings.simulator !== null) return;
  const lanes = lanesOf(settings);
  for (const lane of lanes) checkBaseUrl(lane.baseUrl);
  // A server of the user's own needs no key; where several keys are named, all were meant to be there.
  const ownServer =
    lanes.length === 1 && (settings.connection.baseUrl !== null || settings.connection.lanes !== null);
  const missing = lanes
    .map((lane) => lane.apiKeyEnv)
    .filter((name) => (context.environment[name] ?? '') === '');
  if (missing.length === 0 || ownServer) return;
  throw usageError(
    'KEY_MISSING',
    `No API key: environment variable ${missing.join(' and ')} is not set.`,
    `export ${missing[0]}=…, or name a server of your own with --base-url http://localhost:11434/v1, or rehearse without calling anybody with --simulate`,
  );
}

function checkBaseUrl(baseUrl: string): void {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  if (url !== null && (url.protocol === 'http:' || url.protocol === 'https:')) return;
  throw usageError(
    'BASE_URL_INVALID',
    `--base-url ${JSON.stringify(baseUrl)} is no http or https URL.`,
    'give the whole address, e.g. --base-url http://localhost:11434/v1',
  );
}

/** Opens the lanes of a run; for a simulated run it starts the simulator as well. */
export async function connect(settings: RunSettings, context: CommandContext): Promise<Connection> {
  const { createOpenAIProvider } = await import('../provider/openai/client.js');
  const { clock, random, environment } = context;
  const simulator = settings.simulator === null ? null : await startSimulator(settings, context);
  const open = (lane: LaneSettings): Lane => ({
    name: lane.name,
    weight: lane.weight,
    provider: withModelNames(
      createOpenAIProvider({
        baseUrl: lane.baseUrl,
        apiKey: simulator === null ? (context.takeSecret(lane.apiKeyEnv) ?? null) : null,
        maxConnections: settings.pacing.concurrency,
        clock,
        environment,
      }),
      lane.models,
    ),
    limiter: createLimiter({ requestsPerMinute: lane.rpm, tokensPerMinute: lane.tpm, random }),
  });
  const lanes = lanesOf(settings, simulator?.url ?? null).map(open);
  return {
    lanes,
    async close() {
      await Promise.all(lanes.map((lane) => lane.provider.close()));
      await simulator?.close();
    },
  };
}

/** Sends each request under the name its model has at this endpoint. */
function withModelNames(provider: Provider, models: Readonly<Record<string, string>>): Provider {
  if (Object.keys(models).length === 0) return provider;
  return {
    send(request, options) {
      const body = JSON.parse(request.bodyJson) as { model: string };
      const model = models[body.model] ?? body.model;
      return provider.send({ ...request, bodyJson: JSON.stringify({ ...body, model }) }, options);
    },
    close: () => provider.close(),
  };
}

async function startSimulator(settings: RunSettings, context: CommandContext) {
  const { startSimulator: start } = await import('../simulator/simulator.js');
  try {
    return await start(settings.simulator ?? {}, { clock: context.clock, random: context.random });
  } catch (cause) {
    throw new LlmBatchError(`The simulator could not be started: ${(cause as Error).message}.`, {
      code: 'SIMULATOR_FAILED',
      exitCode: EXIT_CODES.unexpected,
      cause,
    });
  }
}
