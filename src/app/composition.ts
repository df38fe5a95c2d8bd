/** The composition root: the only place that knows which concrete provider answers and what a lane is made of. */
import { serverWithKey } from '../config/known-servers.js';
import type { Clock } from '../core/clock.js';
import { digest } from '../core/digest.js';
import { type ErrorFacts, EXIT_CODES, LlmBatchError, usageError } from '../core/errors.js';
import { isLoopback } from '../core/loopback.js';
import { createRedactor } from '../core/redact.js';
import type { BilledUsage } from '../core/usage.js';
import { modelOf, runEndpointOf } from '../documents/request.js';
import { serviceTierOf } from '../endpoints/rendered-request.js';
import type { Lane } from '../engine/lane.js';
import { LaneQuota } from '../engine/lane-quota.js';
import type { LanePrices } from '../engine/remote/remote-lane.js';
import { createLimiter } from '../limiter/limiter.js';
import { billedMicroUsd, costMicroUsd, worstCaseAtTier, worstCaseMicroUsd } from '../pricing/cost.js';
import type { ModelPrice, PriceBook, PriceTier } from '../pricing/price-book.js';
import { batchLimitsOf } from '../provider/batch-limits.js';
import type { Provider } from '../provider/provider.js';
import type { RemoteProvider } from '../provider/remote-batches.js';
import type { BackgroundProvider } from '../provider/remote-responses.js';
import { checkBudget } from '../runs/run-budget.js';
import { type LaneSettings, lanesOf, type RunSettings } from '../runs/run-settings.js';
import { checkTokenLimit } from '../runs/token-limit.js';
import type { RunLanes } from '../runs/work.js';
import type { SimulatorOptions } from '../simulator/options.js';
import type { QuotaStore } from '../store/quota-store.js';
import type { CommandContext } from './context.js';
import { mostConnections, openFilesLimit } from './open-files.js';
import { workerIdOf } from './open-store.js';
import { checkHeaders, headersOf } from './request-headers.js';

/** `--concurrency auto` stays below this many. */
const MOST_AUTO_CONNECTIONS = 512;
/** A rehearsal should feel like a server: some calls are quick, some are not. */
const REHEARSAL: SimulatorOptions = { latencyMs: { min: 80, max: 400 } };
/** How the simulator names the models it stands in for. */
const SIMULATED_PREFIX = 'simulated/';

/**
 * Checks, before anything is read or stored, that there is somebody to call.
 * @throws LlmBatchError KEY_MISSING, KEY_NAME_INVALID, BASE_URL_INVALID, BASE_URL_CREDENTIALS, HEADER_* (exit 2)
 */
export function checkConnection(settings: RunSettings, context: CommandContext): void {
  if (settings.simulator !== null) return;
  checkStoredConnection(settings, context);
  const lanes = lanesOf(settings);
  for (const lane of lanes) checkHeaders(lane, context);
  // A server of the user's own needs no key; where several keys are named, all were meant to be there.
  const ownServer =
    lanes.length === 1 && (settings.connection.baseUrl !== null || settings.connection.lanes !== null);
  const missing = lanes
    .map((lane) => lane.apiKeyEnv)
    .filter((name) => (context.environment[name] ?? '') === '');
  if (missing.length === 0 || ownServer) return;
  throw usageError(
    'KEY_MISSING',
    missing.length === 1
      ? `No API key: environment variable ${missing[0]} is not set.`
      : `No API keys: environment variables ${missing.join(', ')} are not set.`,
    { variables: `export ${missing.map((name) => `${name}=…`).join(' ')}`, ...otherServer(context) },
  );
}

/**
 * Checks what of a connection is stored with the run, for whoever sends it.
 * @throws LlmBatchError KEY_NAME_INVALID, BASE_URL_INVALID, BASE_URL_CREDENTIALS (exit 2)
 */
export function checkStoredConnection(settings: RunSettings, { environment }: CommandContext): void {
  for (const { baseUrl, apiKeyEnv } of lanesOf(settings)) {
    checkBaseUrl(baseUrl, environment[apiKeyEnv]);
    checkKeyName(apiKeyEnv);
  }
}

/**
 * All that is checked of a run before its first call.
 * @throws LlmBatchError (exit 2) as `checkConnection`, `checkTokenLimit` and `checkPrices`
 */
export async function checkRun(settings: RunSettings, context: CommandContext): Promise<void> {
  checkConnection(settings, context);
  checkTokenLimit(settings);
  await checkPrices(settings, context);
}

/** Whose key is there instead, where the user has not said whom to call. */
function otherServer({ environment }: CommandContext): ErrorFacts {
  const other = serverWithKey(environment);
  return other === null
    ? {}
    : { otherName: other.name, otherKey: other.keyVariable, otherUrl: other.baseUrl };
}

/**
 * The address is stored with the run and shown, so it must hold no secret.
 * @param key the one that goes there, which may stand in the address as well
 */
function checkBaseUrl(baseUrl: string, key: string | undefined): void {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw usageError(
      'BASE_URL_INVALID',
      `The base URL ${JSON.stringify(hideKeys(baseUrl))} is no http or https URL.`,
    );
  }
  const names = [...url.searchParams.keys(), ...new URLSearchParams(url.hash.slice(1)).keys()];
  const named = names.find((name) => /key|token|secret|sig/i.test(name));
  const rest = decoded(url.pathname + url.search + url.hash);
  const secret =
    url.username !== '' || url.password !== ''
      ? 'user name or password'
      : (named ?? (createRedactor(key === undefined ? [] : [key])(rest) === rest ? null : 'key'));
  if (secret === null) return;
  throw usageError(
    'BASE_URL_CREDENTIALS',
    `The base URL for ${url.host} holds a ${hideKeys(secret)}, which would be stored with the run.`,
  );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** What is to be said where a key, and with it all documents, would go over the network as they are; null: nothing. */
export function plainHttpNotice(settings: RunSettings, { environment }: CommandContext): string | null {
  const hosts = lanesOf(settings)
    .filter(({ baseUrl, apiKeyEnv }) => {
      const { protocol, hostname } = new URL(baseUrl);
      return protocol === 'http:' && !isLoopback(hostname) && (environment[apiKeyEnv] ?? '') !== '';
    })
    .map(({ baseUrl }) => new URL(baseUrl).host);
  if (hosts.length === 0) return null;
  return `the key goes to ${hosts.join(', ')} over plain http, where everybody on the way can read it: use https`;
}

/** The name is stored with the run and shown: a key given in its place must not be. */
function checkKeyName(name: string): void {
  if (/^[A-Za-z_]\w*$/.test(name) && hideKeys(name) === name) return;
  throw usageError(
    'KEY_NAME_INVALID',
    'What was given as the name of the environment variable that holds the key is no such name.',
  );
}

/** For what may be a key that the user put in the wrong place. */
const hideKeys = createRedactor([]);

/**
 * Checks, before anything is read or stored, that prices are there where they are needed.
 * @throws LlmBatchError PRICES_* for a price file that is none, PRICE_UNKNOWN under a cap on cost (exit 2)
 */
export async function checkPrices(settings: RunSettings, { clock }: CommandContext): Promise<void> {
  const { budget, pricesFile } = settings;
  if (pricesFile === null && budget.maxCostMicroUsd === null) return;
  const { openPriceBook } = await import('../pricing/open-price-book.js');
  const prices = await openPriceBook(pricesFile);
  const lanes = lanesOf(settings).map(({ baseUrl }) => pricedAt(prices, baseUrl, clock).direct);
  const { request } = settings;
  const { parameters } = request;
  checkBudget(budget, lanes, {
    model: modelOf(request),
    outputCap: runEndpointOf(request).outputCapOf(parameters),
    serviceTier: serviceTierOf(parameters),
  });
}

/**
 * Opens the lanes of a run; for a simulated run it starts the simulator as well.
 * @param quotas where others send under the same limits; null: nobody does
 */
export async function connect(
  settings: RunSettings,
  context: CommandContext,
  quotas: QuotaStore | null = null,
): Promise<RunLanes> {
  const { createOpenAIProvider } = await import('../provider/openai/client.js');
  const { openPriceBook } = await import('../pricing/open-price-book.js');
  const { BodyRoom } = await import('../provider/openai/body-room.js');
  const { clock, random } = context;
  const bodyRoom = new BodyRoom();
  const { pacing } = settings;
  const concurrency = pacing.concurrency === 'auto' ? MOST_AUTO_CONNECTIONS : pacing.concurrency;
  const prices = await openPriceBook(settings.pricesFile);
  const simulator = settings.simulator === null ? null : await startSimulator(context);
  const laneSettings = lanesOf(settings, simulator?.url ?? null);
  const all = mostConnections(openFilesLimit());
  // The simulator's end of each connection is in this process too. Lanes keep connections open that are idle.
  const most = Math.max(1, simulator === null ? all : Math.floor(all / 2));
  const perLane = Math.max(1, Math.floor(most / laneSettings.length));
  const maxConnections = Math.min(pacing.connections ?? concurrency, perLane);
  const open = (lane: LaneSettings): Lane => {
    const apiKey = simulator === null ? (context.takeSecret(lane.apiKeyEnv) ?? null) : null;
    const provider: Provider & Partial<RemoteProvider & BackgroundProvider> = createOpenAIProvider({
      ...providerOptions(lane, apiKey, context),
      ...{ maxConnections, times: pacing, bodyRoom },
    });
    const { remoteBatches: batches, remoteResponses: responses } = provider;
    const bodyFor = modelNames(lane.models);
    const renamed = <Request extends { readonly bodyJson: string }>(request: Request): Request => ({
      ...request,
      bodyJson: bodyFor(request.bodyJson),
    });
    const { direct, batch } = pricedAt(prices, lane.baseUrl, clock);
    const limiter = createLimiter({
      requestsPerMinute: lane.rpm,
      tokensPerMinute: lane.tpm,
      requestsPerDay: lane.rpd,
      random,
    });
    // A rehearsal has its server for itself.
    const store = simulator === null ? quotas : null;
    const identity = quotaIdentity(lane, apiKey, modelOf(settings.request));
    const sender = workerIdOf(context);
    return {
      ...{ name: lane.name, weight: lane.weight, limiter, ...direct },
      provider: { ...provider, send: (request, options) => provider.send(renamed(request), options) },
      ...(store && { quota: new LaneQuota({ store, lane: identity, sender, limiter, clock }) }),
      ...(responses && {
        responses: {
          ...responses,
          create: (request, options) => responses.create(renamed(request), options),
        },
      }),
      ...(batches && { remote: { batches, limits: batchLimitsOf(lane.baseUrl), bodyFor, ...batch } }),
    };
  };
  const lanes = laneSettings.map(open);
  return {
    lanes,
    mostConnections: most,
    prices: { source: prices.source, date: prices.date },
    async close() {
      await Promise.all(lanes.flatMap((lane) => [lane.provider.close(), lane.quota?.end()]));
      await simulator?.close();
    },
  };
}

function providerOptions(lane: LaneSettings, apiKey: string | null, context: CommandContext) {
  const { baseUrl, apiKeyHeader } = lane;
  const { clock, environment } = context;
  return { baseUrl, apiKey, apiKeyHeader, ...headersOf(lane, context), clock, environment };
}

/**
 * What two senders have in common that use the same limits: the server, the key and the model. A digest, so that neither
 * key nor address is written where others read.
 */
function quotaIdentity({ baseUrl, models }: LaneSettings, apiKey: string | null, model: string): string {
  return digest(JSON.stringify([new URL(baseUrl).href, apiKey, models, model]));
}

/** The way to the endpoint of one lane, apart from any run; for `doctor`. */
export async function openProvider(
  lane: LaneSettings,
  apiKey: string | null,
  context: CommandContext,
): Promise<Provider> {
  const { createOpenAIProvider } = await import('../provider/openai/client.js');
  return createOpenAIProvider({ ...providerOptions(lane, apiKey, context), maxConnections: 1 });
}

/**
 * Address and variable of the proxy that the lane's calls go through; null: none.
 * @throws LlmBatchError PROXY_INVALID (exit 2)
 */
export async function proxyOf(
  { baseUrl }: LaneSettings,
  { environment }: CommandContext,
): Promise<string | null> {
  const { proxyFor } = await import('../provider/openai/proxy.js');
  return proxyFor(new URL(baseUrl), environment)?.name ?? null;
}

/** Looks a model up once per run: a price that changes at midnight is not worth a search at every call. */
function pricedAt(
  prices: PriceBook,
  baseUrl: string,
  clock: Clock,
): { readonly direct: LanePrices; readonly batch: LanePrices } {
  const known = new Map<string, ModelPrice | null>();
  const priceOf = (model: string): ModelPrice | null => {
    let price = known.get(model);
    if (price === undefined) {
      price = prices.priceOf(model, { baseUrl, nowMs: clock.now() });
      known.set(model, price);
    }
    return price;
  };
  const billedPrice = (asked: string, { answeredBy = '' }: BilledUsage): ModelPrice | null =>
    // What the request names is what is billed, except that a simulated answer costs nothing.
    priceOf(answeredBy.startsWith(SIMULATED_PREFIX) ? answeredBy : asked);
  const pricedBy = (
    cost: (usage: BilledUsage, price: ModelPrice) => number | null,
    most: (price: ModelPrice, ...call: [number, number | null, string | null]) => number | null,
  ): LanePrices => ({
    costOf(asked, usage) {
      const price = billedPrice(asked, usage);
      return price && cost(usage, price);
    },
    mostOf(model, inputTokens, outputCap, serviceTier) {
      const price = priceOf(model);
      return price && most(price, inputTokens, outputCap, serviceTier);
    },
  });
  return {
    direct: pricedBy(billedMicroUsd, (price, ...call) => worstCaseAtTier(...call, price)),
    batch: pricedBy(
      (usage, price) => costMicroUsd(usage, price, { tier: batchTier(price) }),
      (price, input, cap) => worstCaseMicroUsd(input, cap, price, { tier: batchTier(price) }),
    ),
  };
}

/** Where nobody knows of a discount, none is reckoned with. */
function batchTier({ tiers }: ModelPrice): PriceTier {
  return tiers.batch === null ? 'standard' : 'batch';
}

/** @returns what gives a body the name that its model has at this endpoint */
function modelNames(models: Readonly<Record<string, string>>): (bodyJson: string) => string {
  if (Object.keys(models).length === 0) return (bodyJson) => bodyJson;
  return (bodyJson) => {
    const body = JSON.parse(bodyJson) as { model: string };
    // Documents name models: one called `constructor` is none of ours.
    const model = Object.hasOwn(models, body.model) ? models[body.model] : body.model;
    return JSON.stringify({ ...body, model });
  };
}

async function startSimulator(context: CommandContext) {
  const { startSimulator: start } = await import('../simulator/simulator.js');
  try {
    return await start(REHEARSAL, { clock: context.clock, random: context.random });
  } catch (cause) {
    throw new LlmBatchError(`The simulator could not be started: ${(cause as Error).message}.`, {
      ...{ code: 'SIMULATOR_FAILED', exitCode: EXIT_CODES.unexpected, cause },
    });
  }
}
