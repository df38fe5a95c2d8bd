/** The checks of `doctor`, in their order: what is here, what is stored, and who would be called. */
import { resolve } from 'node:path';
import { checkConnection, openProvider, proxyOf } from '../app/composition.js';
import type { CommandContext } from '../app/context.js';
import { salvageFile, storeUrl, withStore } from '../app/open-store.js';
import type { ResolvedSettings } from '../config/load.js';
import type { Settings } from '../config/settings.js';
import { LlmBatchError } from '../core/errors.js';
import type { RunRecord } from '../core/run.js';
import { modelOf } from '../documents/request.js';
import { type Diagnosis, fault, faultOf, ok } from '../runs/diagnose/diagnose.js';
import { diagnoseEndpoint, diagnoseKey } from '../runs/diagnose/diagnose-lane.js';
import { diagnoseServerStore, diagnoseStore } from '../runs/diagnose/diagnose-store.js';
import { findRun } from '../runs/find-run.js';
import { type LaneSettings, lanesOf, type RunSettings, settingsOfRun } from '../runs/run-settings.js';
import { engineVersion, isServerUrl, serverPlace, storePath } from '../store/open.js';
import { runSettingsFrom, withGivenFlags } from './asked-settings.js';
import { trustStoredRun } from './stored-reach.js';

export interface DiagnosisOptions {
  readonly resolved: ResolvedSettings;
  /** The run whose settings are looked at; undefined: the newest unfinished one, if any. */
  readonly runName: string | undefined;
  /** Nobody is called. */
  readonly offline: boolean;
  /** The servers that the store names are asked without asking the user. */
  readonly trustStore: boolean;
  readonly signal: AbortSignal;
}

const OLDEST_NODE = 20;

export async function* diagnose(
  context: CommandContext,
  { resolved, runName, offline, trustStore, signal }: DiagnosisOptions,
): AsyncGenerator<Diagnosis> {
  yield lookAtNode();
  let isSound = true;
  if (!isServerUrl(resolved.settings.store ?? '')) {
    const engine = await lookAtEngine();
    yield engine;
    isSound = engine.level !== 'fault';
  }
  if (isSound) {
    for await (const finding of diagnoseStoreOf(context, resolved.settings)) {
      isSound &&= finding.level !== 'fault';
      yield finding;
    }
  }
  const found = await findSettings(context, resolved, runName, isSound, trustStore || offline);
  if ('check' in found) {
    yield found;
    return;
  }
  if (found.settings.simulator !== null) {
    yield ok('settings', `${found.origin} is a rehearsal: no key is needed and nobody is called.`);
    return;
  }
  const refusal = refusalOf(found.settings, context);
  if (refusal?.check !== 'settings') yield ok('settings', found.origin);
  if (refusal !== null) yield refusal;
  else yield* diagnoseLanes(context, found.settings, offline, signal);
}

async function* diagnoseStoreOf(context: CommandContext, settings: Settings): AsyncGenerator<Diagnosis> {
  const { clock } = context;
  let url: string;
  let path: string;
  try {
    url = storeUrl(context, settings);
    if (isServerUrl(url)) {
      const { schemaName } = settings;
      const salvagePath = await salvageFile(context, settings);
      const place = serverPlace(url, schemaName);
      yield* diagnoseServerStore({ url, schemaName, place, salvagePath, clock });
      return;
    }
    path = resolve(context.workingFolder, storePath(url));
  } catch (error) {
    yield faultOf('store_file', error);
    return;
  }
  yield* diagnoseStore({ url, path, clock, userId: process.getuid?.() ?? null });
}

/** Why a run would not start with these settings; null when it would. */
function refusalOf(settings: RunSettings, context: CommandContext): Diagnosis | null {
  try {
    checkConnection(settings, context);
    return null;
  } catch (error) {
    const isOfKey = error instanceof LlmBatchError && error.code.startsWith('KEY_');
    return faultOf(isOfKey ? 'key' : 'settings', error);
  }
}

async function* diagnoseLanes(
  context: CommandContext,
  settings: RunSettings,
  offline: boolean,
  signal: AbortSignal,
): AsyncGenerator<Diagnosis> {
  const model = modelOf(settings.request);
  const open =
    (lane: LaneSettings) =>
    (apiKey: string | null, baseUrl: string = lane.baseUrl) =>
      openProvider({ ...lane, baseUrl }, apiKey, context);
  for (const lane of lanesOf(settings)) {
    const apiKey = context.takeSecret(lane.apiKeyEnv) ?? null;
    yield diagnoseKey({ lane, apiKey });
    const proxy = await proxyOf(lane, context);
    if (proxy !== null) yield ok('proxy', `${lane.baseUrl} is reached through ${proxy}.`, lane.name);
    if (offline) continue;
    yield* diagnoseEndpoint({ lane, model, apiKey, open: open(lane), clock: context.clock, signal });
  }
}

interface FoundSettings {
  readonly settings: RunSettings;
  /** Whose they are, as a sentence or as its subject. */
  readonly origin: string;
}

/** Those with which `resume` would go on, or else those with which `run` would start. */
async function findSettings(
  context: CommandContext,
  resolved: ResolvedSettings,
  runName: string | undefined,
  hasStore: boolean,
  isTrusted: boolean,
): Promise<FoundSettings | Diagnosis> {
  try {
    const run = hasStore ? await findRunToResume(context, resolved.settings, runName) : null;
    if (run === null) {
      const settings = await runSettingsFrom(resolved, { inputs: [] }, context.workingFolder);
      return { settings, origin: 'Those with which `run` would start.' };
    }
    const settings = withGivenFlags(settingsOfRun(run), resolved, context.workingFolder);
    if (settings.simulator !== null) return { settings, origin: `Run '${run.name}'` };
    await trustStoredRun(context, settings, resolved, isTrusted);
    const { model } = resolved.settings;
    const request = resolved.given.has('model') ? { ...settings.request, model } : settings.request;
    return { settings: { ...settings, request }, origin: `Those of run '${run.name}'.` };
  } catch (error) {
    return faultOf('settings', error);
  }
}

async function findRunToResume(
  context: CommandContext,
  settings: Settings,
  runName: string | undefined,
): Promise<RunRecord | null> {
  try {
    return await withStore(context, settings, 'read', async (store) => {
      if (runName !== undefined) return findRun(store, runName);
      const runs = await store.listRuns();
      // What is looked at is whether a server can be called; a rehearsal calls none.
      return runs.find((run) => run.status === 'open' && !run.simulated) ?? null;
    });
  } catch (error) {
    if (runName === undefined && error instanceof LlmBatchError && error.code === 'STORE_MISSING')
      return null;
    throw error;
  }
}

function lookAtNode(): Diagnosis {
  const { version } = process;
  if (Number.parseInt(version.slice(1), 10) >= OLDEST_NODE) return ok('node', version);
  return fault('node', `${version} is too old.`, `Install Node ${OLDEST_NODE} or newer.`);
}

async function lookAtEngine(): Promise<Diagnosis> {
  try {
    return ok('storage_engine', await engineVersion());
  } catch (error) {
    if (error instanceof LlmBatchError) return faultOf('storage_engine', error);
    const problem = `SQLite cannot be loaded: ${(error as Error).message.split('\n')[0] ?? ''}`;
    return fault(
      'storage_engine',
      problem,
      'Install the dependencies again, with this version of Node: npm ci',
    );
  }
}
