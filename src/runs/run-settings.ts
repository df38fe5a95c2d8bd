/** What a run needs to go on from the store alone. Stored as JSON with the run; never holds a key. */

import type { HeaderTexts } from '../config/header-texts.js';
import type { LaneDefinition } from '../config/lanes.js';
import type { SettingsOf } from '../config/settings.js';
import { EXIT_CODES, LlmBatchError } from '../core/errors.js';
import { isJsonObject, type JsonObject } from '../core/json.js';
import type { RunRecord } from '../core/run.js';
import type { RequestSettings } from '../documents/request.js';
import { apiRootOf } from '../endpoints/endpoints.js';
import type { InputDescription } from '../input/input-description.js';
import { fromStoredPath, type StorePlace, toStoredPath } from '../store/stored-path.js';
import { STORED_SETTINGS } from './stored-settings.js';

export interface ConnectionSettings {
  /** Null: the provider's own public endpoint. */
  readonly baseUrl: string | null;
  /** Names of environment variables that hold keys, one lane each. */
  readonly apiKeyEnv: readonly string[];
  /** Header that carries the key as it is; null: Authorization, as a bearer token. Absent in runs of earlier versions. */
  readonly apiKeyHeader?: string | null;
  /** Of all lanes; absent as above. */
  readonly headers?: HeaderTexts | null;
  /** Lanes of the config file; they take the place of `apiKeyEnv`. */
  readonly lanes: readonly LaneDefinition[] | null;
}

export type PacingSettings = SettingsOf<'pacing'>;
export type BudgetSettings = SettingsOf<'budget'>;
export type RemoteSettings = SettingsOf<'remote'>;
/** Which answers may stand for a call. */
export type SharingSettings = SettingsOf<'sharing'>;

/** What an answer has to be beyond text. */
export interface OutputSettings {
  readonly check: { readonly kind: 'schema'; readonly schema: JsonObject } | { readonly kind: 'json' } | null;
  /** A second try tells the model what was wrong with the first. */
  readonly repair: boolean;
}

export interface RunSettings {
  readonly request: RequestSettings;
  /** What the input was, known once it has been opened; absent in runs of earlier versions. */
  readonly input?: InputDescription;
  /** Of standard input, in hexadecimal; absent for files and in runs of earlier versions. */
  readonly inputSha256?: string;
  readonly connection: ConnectionSettings;
  readonly pacing: PacingSettings;
  readonly remote: RemoteSettings;
  readonly budget: BudgetSettings;
  readonly answers: OutputSettings;
  readonly sharing: SharingSettings;
  /** `--prices`; null: the prices that come with the program. */
  readonly pricesFile: string | null;
  /** Not null for a rehearsal. What earlier versions wrote in it is not read: the simulator's options can name files. */
  readonly simulator: JsonObject | null;
  /** Absolute path of the results file that `-o` named; null: beside the input. */
  readonly output: string | null;
}

/** @param place the store that they are for */
export function settingsToJson(settings: RunSettings, place: StorePlace): JsonObject {
  const stored = withPaths(settings, (path) => toStoredPath(path, place));
  return JSON.parse(JSON.stringify(stored)) as JsonObject;
}

/** What runs of earlier versions do not say. */
const EARLIER: Pick<RunSettings, 'sharing'> = { sharing: { dedupe: false, reuse: false } };
const EARLIER_REMOTE: RemoteSettings = {
  remote: false,
  remoteMax: 1,
  background: false,
  keepRemote: false,
  pollIntervalMs: null,
  finishDirectByMs: null,
};
const EARLIER_PACING: Partial<PacingSettings> = {
  connections: null,
  connectTimeoutMs: 10_000,
  headersTimeoutMs: null,
  bodyTimeoutMs: null,
  keepAliveMs: 4_000,
  groupUrl: null,
  groupMin: 10,
  groupMax: 1,
  targetLatencyMs: 5_000,
  groupWaitMs: 0,
};

/**
 * The inverse of `settingsToJson`.
 * @throws LlmBatchError STORE_RUN_ODD (exit 5) for what this program does not write
 */
export function settingsOfRun(run: RunRecord): RunSettings {
  const { pacing, remote = {} } = run.settings;
  const settings = {
    ...EARLIER,
    ...run.settings,
    remote: isJsonObject(remote) ? { ...EARLIER_REMOTE, ...remote } : remote,
    ...(isJsonObject(pacing) && { pacing: { ...EARLIER_PACING, ...pacing } }),
  };
  const odd = STORED_SETTINGS(settings);
  if (odd === null)
    return withPaths(settings as unknown as RunSettings, (path) => fromStoredPath(path, run.folder));
  const problem = `The store's settings of run '${run.name}' are not as this program writes them: ${odd.slice(1)}.`;
  throw new LlmBatchError(problem, { code: 'STORE_RUN_ODD', exitCode: EXIT_CODES.store });
}

/** With every path in them changed. */
function withPaths(settings: RunSettings, change: (path: string) => string): RunSettings {
  const { request, pricesFile, output } = settings;
  return {
    ...settings,
    request:
      typeof request?.imageFolder !== 'string'
        ? request
        : { ...request, imageFolder: change(request.imageFolder) },
    pricesFile: pricesFile && change(pricesFile),
    output: output && change(output),
  };
}

/** The folder that documents name files of; null where the prompt takes none. */
export function imageFolderOf({ promptTemplate, imageFolder }: RequestSettings): string | null {
  return typeof imageFolder === 'string' && imageFolder !== '' && /\{\{\s*image\s/.test(promptTemplate ?? '')
    ? imageFolder
    : null;
}

const SIMULATED_LANE = 'simulator';
export const OPENAI_BASE_URL = 'https://api.openai.com/v1';

/** A lane with everything settled: what it does not say itself, the run says. */
export interface LaneSettings extends LaneDefinition {
  readonly baseUrl: string;
}

/**
 * The lanes of a run, in order. Limits that the run names hold for each lane that has none of its own.
 * @param simulatorUrl where the simulator of a rehearsal listens
 */
export function lanesOf(settings: RunSettings, simulatorUrl: string | null = null): readonly LaneSettings[] {
  const { connection, pacing } = settings;
  if (settings.simulator !== null) {
    const baseUrl = simulatorUrl ?? 'http://127.0.0.1';
    return [{ ...defaultLane(SIMULATED_LANE, baseUrl, pacing), name: SIMULATED_LANE }];
  }
  const runBaseUrl = apiRootOf(connection.baseUrl ?? OPENAI_BASE_URL);
  if (connection.lanes === null) {
    return connection.apiKeyEnv.map((name) => ({
      ...defaultLane(name, runBaseUrl, pacing),
      apiKeyHeader: connection.apiKeyHeader ?? null,
      headers: connection.headers ?? {},
    }));
  }
  return connection.lanes.map((lane) => ({
    ...lane,
    baseUrl: lane.baseUrl === null ? runBaseUrl : apiRootOf(lane.baseUrl),
    apiKeyHeader: lane.apiKeyHeader ?? connection.apiKeyHeader ?? null,
    headers: { ...connection.headers, ...lane.headers },
    rpm: lane.rpm ?? pacing.rpm,
    tpm: lane.tpm ?? pacing.tpm,
    rpd: lane.rpd ?? pacing.rpd,
  }));
}

function defaultLane(apiKeyEnv: string, baseUrl: string, { rpm, tpm, rpd }: PacingSettings): LaneSettings {
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).host : baseUrl;
  const name = `${apiKeyEnv}@${host}`;
  return { name, apiKeyEnv, baseUrl, apiKeyHeader: null, headers: {}, models: {}, rpm, tpm, rpd, weight: 1 };
}
