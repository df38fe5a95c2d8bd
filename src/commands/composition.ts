/** The composition root: the only place that knows which concrete provider answers and what a lane is made of. */
import { EXIT_CODES, LlmBatchError, usageError } from '../core/errors.js';
import type { Lane } from '../engine/lane.js';
import { createLimiter } from '../limiter/limiter.js';
import type { RunSettings } from '../runs/run-settings.js';
import type { CommandContext } from './context.js';

export const OPENAI_BASE_URL = 'https://api.openai.com/v1';
const SIMULATED_LANE = 'simulator';

export interface Connection {
  readonly lanes: readonly Lane[];
  close(): Promise<void>;
}

/**
 * Checks, before anything is read or stored, that there is somebody to call.
 * @throws LlmBatchError KEY_MISSING (exit 2)
 */
export function checkConnection(settings: RunSettings, context: CommandContext): void {
  if (settings.simulator !== null) return;
  const { baseUrl, apiKeyEnv } = settings.connection;
  if (baseUrl !== null) checkBaseUrl(baseUrl);
  const missing = apiKeyEnv.filter((name) => (context.environment[name] ?? '') === '');
  // A local server needs no key; several named keys were meant to be there.
  if (missing.length === 0 || (baseUrl !== null && apiKeyEnv.length === 1)) return;
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
  const { clock, random } = context;
  const { pacing } = settings;
  const simulator = settings.simulator === null ? null : await startSimulator(settings, context);
  const baseUrl = simulator?.url ?? settings.connection.baseUrl ?? OPENAI_BASE_URL;
  const names = simulator === null ? settings.connection.apiKeyEnv : [SIMULATED_LANE];
  const lanes = names.map((name): Lane => {
    const apiKey = simulator === null ? (context.takeSecret(name) ?? null) : null;
    return {
      name: simulator === null ? `${name}@${new URL(baseUrl).host}` : SIMULATED_LANE,
      provider: createOpenAIProvider({ baseUrl, apiKey, maxConnections: pacing.concurrency, clock }),
      limiter: createLimiter({ requestsPerMinute: pacing.rpm, tokensPerMinute: pacing.tpm, random }),
    };
  });
  return {
    lanes,
    async close() {
      await Promise.all(lanes.map((lane) => lane.provider.close()));
      await simulator?.close();
    },
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
