/** What a run needs to go on from the store alone. Stored as JSON with the run; never holds a key. */
import type { JsonObject } from '../core/json.js';
import type { RequestSettings } from '../documents/request.js';
import type { RunRecord } from '../store/store.js';

export interface ConnectionSettings {
  /** Null: the provider's own public endpoint. */
  readonly baseUrl: string | null;
  /** Names of environment variables that hold keys, one lane each. */
  readonly apiKeyEnv: readonly string[];
}

export interface PacingSettings {
  readonly concurrency: number;
  readonly rpm: number | null;
  readonly tpm: number | null;
  readonly maxAttempts: number;
  readonly timeoutMs: number;
  readonly maxWaitMs: number;
  readonly graceMs: number;
}

export interface RunSettings {
  readonly request: RequestSettings;
  readonly connection: ConnectionSettings;
  readonly pacing: PacingSettings;
  /** Options of the simulator; null for a real server. */
  readonly simulator: JsonObject | null;
}

export function settingsToJson(settings: RunSettings): JsonObject {
  return JSON.parse(JSON.stringify(settings)) as JsonObject;
}

/** The inverse of `settingsToJson`: what this program stored, it may trust. */
export function settingsOfRun(run: RunRecord): RunSettings {
  return run.settings as unknown as RunSettings;
}
