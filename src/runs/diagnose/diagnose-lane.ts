/** Looks at one lane: its key, its endpoint, and what the endpoint says when it is asked for its models. */
import type { Clock } from '../../core/clock.js';
import type { ProviderFailure } from '../../core/failure.js';
import type { QuotaHint, RateLimitHints } from '../../core/limits.js';
import type { Provider, ProviderProbe } from '../../provider/provider.js';
import type { LaneSettings } from '../run-settings.js';
import { type Diagnosis, fault, faultOf, ok, warning } from './diagnose.js';

export interface LaneLook {
  readonly lane: LaneSettings;
  /** As the requests name it. */
  readonly model: string;
  readonly apiKey: string | null;
  /** Opens the way to the lane's endpoint, with this key or with none. */
  readonly open: (apiKey: string | null, baseUrl?: string) => Promise<Provider>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const PROBE_TIMEOUT_MS = 15_000;

/** Whether the lane has the key that it needs. */
export function diagnoseKey({ lane, apiKey }: Pick<LaneLook, 'lane' | 'apiKey'>): Diagnosis {
  const state = apiKey === null ? 'is not set; a server of your own may need no key' : 'is set';
  return ok('key', `${lane.apiKeyEnv} ${state}.`, lane.name);
}

export async function* diagnoseEndpoint(look: LaneLook): AsyncGenerator<Diagnosis> {
  const { lane, clock } = look;
  const startedAtMs = clock.monotonicMs();
  let probe: ProviderProbe;
  try {
    probe = await probeWith(look, look.apiKey);
  } catch (error) {
    // A key or a proxy that cannot be used at all.
    yield faultOf('settings', error, lane.name);
    return;
  }
  if (probe.outcome === 'aborted') return;
  const tookMs = Math.round(clock.monotonicMs() - startedAtMs);
  if (probe.outcome === 'failed' && probe.failure.httpStatus === undefined) {
    const message = `${lane.baseUrl} cannot be reached: ${probe.failure.message}`;
    yield fault('endpoint', message, { code: 'SERVER_UNREACHABLE' }, lane.name);
    return;
  }
  if (probe.outcome === 'failed' && probe.failure.kind === 'network') {
    yield fault('endpoint', `${probe.failure.message}.`, { code: 'BASE_URL_WRONG' }, lane.name);
    return;
  }
  const meant = probe.outcome === 'unlisted' ? await betterAddress(look) : null;
  if (meant !== null) {
    const message = `${lane.baseUrl} answers, but the API is elsewhere: did you mean ${meant}?`;
    yield fault('endpoint', message, { code: 'BASE_URL_MEANT', facts: { meant } }, lane.name);
    return;
  }
  yield ok('endpoint', `${lane.baseUrl} answers, in ${tookMs} ms.`, lane.name);
  yield await lookAtKey(look, probe);
  if (probe.outcome !== 'failed') yield lookAtModel(look, probe);
  yield lookAtLimits(lane, probe.hints);
}

/** Where models are listed, or a key is wanted for them, one version below an address that knows of none. */
async function betterAddress(look: LaneLook): Promise<string | null> {
  const url = new URL(look.lane.baseUrl);
  if (/\/v\d/.test(url.pathname)) return null;
  url.pathname = `${url.pathname.replace(/\/$/, '')}/v1`;
  const probe = await probeWith(look, look.apiKey, url.href);
  const isThere = probe.outcome === 'listed' || (probe.outcome === 'failed' && probe.failure.kind === 'auth');
  return isThere ? url.href : null;
}

async function probeWith(look: LaneLook, apiKey: string | null, baseUrl?: string): Promise<ProviderProbe> {
  const provider = await look.open(apiKey, baseUrl);
  try {
    return await provider.probe({ timeoutMs: PROBE_TIMEOUT_MS, signal: look.signal });
  } finally {
    await provider.close();
  }
}

async function lookAtKey(
  look: LaneLook,
  probe: ProviderProbe & { readonly hints: RateLimitHints },
): Promise<Diagnosis> {
  const { lane, apiKey } = look;
  if (probe.outcome === 'failed') return refused(look, probe.failure);
  if (probe.outcome === 'unlisted') {
    return notKnown('key_accepted', 'Not known: the server keeps no list of models to ask for.', lane);
  }
  if (apiKey === null) return ok('key_accepted', 'The server wants none for its list of models.', lane.name);
  const anonymous = await probeWith(look, null);
  return anonymous.outcome === 'listed'
    ? notKnown('key_accepted', 'Not known: the server tells its models to anybody.', lane)
    : ok('key_accepted', `The server takes ${lane.apiKeyEnv}.`, lane.name);
}

/** What could not be learnt is no tick. */
function notKnown(check: 'key_accepted' | 'model', message: string, lane: LaneSettings): Diagnosis {
  const advice = 'The first call of a run will show it; the others wait for that one.';
  return warning(check, message, advice, lane.name);
}

function refused({ lane, apiKey }: LaneLook, failure: ProviderFailure): Diagnosis {
  const { kind, message } = failure;
  if (kind === 'auth') {
    const what = apiKey === null ? 'The server wants a key' : `The server does not take ${lane.apiKeyEnv}`;
    const advice = `Set ${lane.apiKeyEnv} to a key that is valid for ${lane.baseUrl}.`;
    return fault('key_accepted', `${what}: ${message}`, advice, lane.name);
  }
  if (kind === 'quota_exhausted') {
    return fault('key_accepted', message, 'Add credit or raise the limit at the provider.', lane.name);
  }
  return warning('key_accepted', `The server would not say: ${message}`, 'Try again in a while.', lane.name);
}

function lookAtModel({ lane, model }: LaneLook, probe: ProviderProbe): Diagnosis {
  const name = lane.models[model] ?? model;
  if (probe.outcome !== 'listed') {
    return notKnown('model', `${name}: not known, the server keeps no list of models.`, lane);
  }
  if (isListed(name, probe.models)) return ok('model', `${name} is known to the server.`, lane.name);
  const { models } = probe;
  const alike = models.length > MOST_TOLD ? closest(name, models) : models;
  const message = `${name} is ${models.length === 1 ? 'not the one model' : `none of the ${models.length} models`} that the server lists.`;
  const advice = { code: 'MODEL_UNKNOWN', facts: { alike: alike.join(', ') } };
  // There a model goes by the name of its deployment, which no list has.
  if (/\.azure\.com(?:[:/]|$)/.test(lane.baseUrl)) return warning('model', message, advice, lane.name);
  return fault('model', message, advice, lane.name);
}

/** Ollama lists `name:latest` for `name`; OpenRouter takes `name:variant` and lists `name`. */
function isListed(name: string, models: readonly string[]): boolean {
  return (
    models.includes(name) ||
    models.includes(`${name}:latest`) ||
    models.includes(name.replace(/:[^:/]*$/, ''))
  );
}

const MOST_TOLD = 3;

/** Models whose names share the longest beginning with this one, or hold it. */
function closest(name: string, models: readonly string[]): string[] {
  const wanted = name.toLowerCase();
  const likeness = (model: string): number => {
    const known = model.toLowerCase();
    if (known.includes(wanted) || wanted.includes(known)) return wanted.length;
    let shared = 0;
    while (shared < wanted.length && wanted[shared] === known[shared]) shared += 1;
    return shared;
  };
  return models
    .map((model) => ({ model, likeness: likeness(model) }))
    .filter((each) => each.likeness >= Math.min(4, wanted.length))
    .sort((one, other) => other.likeness - one.likeness || one.model.localeCompare(other.model))
    .slice(0, MOST_TOLD)
    .map((each) => each.model);
}

function lookAtLimits(lane: LaneSettings, hints: RateLimitHints): Diagnosis {
  const told = [
    limitText('requests', hints.requests),
    limitText('tokens', hints.tokens),
    limitText('requests a day', hints.requestsPerDay),
  ].filter((text) => text !== null);
  const own = [
    lane.rpm === null ? null : `rpm ${lane.rpm}`,
    lane.tpm === null ? null : `tpm ${lane.tpm}`,
    lane.rpd === null ? null : `rpd ${lane.rpd}`,
  ].filter((text) => text !== null);
  const said = told.length > 0 ? `The server tells ${told.join(', ')}` : 'The server tells none here';
  return ok(
    'limits',
    own.length > 0 ? `${said}; yours: ${own.join(', ')}.` : `${said}; what its answers tell is kept to.`,
    lane.name,
  );
}

function limitText(name: string, quota: QuotaHint | undefined): string | null {
  if (quota === undefined) return null;
  const { limit, remaining } = quota;
  if (limit !== undefined && remaining !== undefined) return `${remaining} of ${limit} ${name} left`;
  if (limit !== undefined) return `${limit} ${name}`;
  return remaining === undefined ? null : `${remaining} ${name} left`;
}
