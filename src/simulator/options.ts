/** What a simulator can be told, what holds when it is not, and the check of both. */
import { usageError } from '../core/errors.js';
import { isJsonObject } from '../core/json.js';
import { type Limits, MINUTE_MS } from './account.js';
import { HEADER_DIALECTS, type HeaderDialect } from './dialect.js';
import { type Directive, parseDirective } from './directive.js';
import type { RetryAfter } from './refusal.js';
import type { NumberRange } from './seeded.js';

/** One accepted bearer key. What it does not say is as the server's options say. */
export interface SimulatedKey {
  readonly key: string;
  readonly rpm?: number | null;
  readonly tpm?: number | null;
  readonly rpd?: number | null;
  readonly insufficientQuotaAfter?: number | null;
}

/** A span in which every call meets the same fault. */
export interface Outage {
  /** As in a directive: `503`, `429`, `reset`, `retry-after 5`, … */
  readonly fault: string;
  /** From the start of the server or the moment of reconfiguration; default 0. */
  readonly afterMs?: number;
  /** Default: until healed. */
  readonly forMs?: number | null;
}

export interface Prices {
  readonly inputMicroUsdPerToken: number;
  readonly outputMicroUsdPerToken: number;
}

export interface LatencyClimb {
  /** Calls open at once that the server bears without slowing down. */
  readonly beyondOpenCalls: number;
  /** Added for each further one. */
  readonly msPerCall: number;
}

/** What a batch can be made to meet as a whole. */
export const BATCH_FAULTS = [
  /** Its time is up when half of its lines have been run. */
  'expire',
  /** Its output file is in another order than its input. */
  'shuffle',
  /** No output file is named at its end. */
  'lose-output',
  /** No error file is named at its end. */
  'lose-errors',
] as const;

export type BatchFault = (typeof BATCH_FAULTS)[number];

/** Requests about files, batches and background responses: their names, and where they go. */
export const REMOTE_ROUTES = {
  upload: 'POST files',
  files: 'GET files',
  file: 'GET files ID',
  content: 'GET files ID content',
  delete: 'DELETE files ID',
  create: 'POST batches',
  batches: 'GET batches',
  batch: 'GET batches ID',
  cancel: 'POST batches ID cancel',
  response: 'GET responses ID',
  'cancel-response': 'POST responses ID cancel',
  'delete-response': 'DELETE responses ID',
} as const;

export type RemoteRoute = keyof typeof REMOTE_ROUTES;

export const ROUTE_NAMES = Object.keys(REMOTE_ROUTES) as RemoteRoute[];

/** What such a request can be made to meet. */
export const ROUTE_FAULTS = [
  '429',
  '500',
  '503',
  /** Never answered. */
  'hang',
  /** The connection is reset: of an upload in its middle, else before anything is done. */
  'reset',
  /** It is done, but the connection is reset instead of an answer. */
  'drop',
  /** It is done, and the connection closes in the middle of the answer. */
  'cut',
] as const;

export interface RouteFault {
  readonly route: RemoteRoute;
  readonly fault: (typeof ROUTE_FAULTS)[number];
  /** Requests that pass before the first that meets it. Default 0. */
  readonly after?: number | null;
  /** Requests that meet it. Default 1. */
  readonly times?: number | null;
}

export const DEFAULT_SEED = 1;
export const DEFAULT_OUTPUT_TOKENS = 16;

/** Options that are a value each, as they are where they are left out. */
const DEFAULTS = {
  /** On 127.0.0.1; 0 takes a free one. */
  port: 0,
  /** For latencies, lengths and faults. Left out, it is drawn from `dependencies.random` where there is one. */
  seed: DEFAULT_SEED,
  /** Time to an admitted call's answer; a range is drawn per call. Refusals come at once. */
  latencyMs: 0 as NumberRange,
  /** Added for each document of a call. */
  latencyMsPerDocument: 0,
  latencyClimb: null as LatencyClimb | null,
  /** Length of an answer, drawn per document; an answer keeps to the request's own output cap. */
  outputTokens: DEFAULT_OUTPUT_TOKENS as NumberRange,
  /** Requests in any 60 seconds and key; null: no limit. */
  rpm: null as number | null,
  /** Tokens in any 60 seconds and key; null: no limit. */
  tpm: null as number | null,
  /** Requests in any 24 hours and key; null: no limit. */
  rpd: null as number | null,
  /** Whether refused calls use up the requests-per-minute limit too, as OpenAI says of its own. */
  countRefused: false,
  /** Tokens charged at admission: what the call really uses, or prompt and output cap in full. */
  charge: 'used' as 'used' | 'cap',
  /** Names of the rate-limit headers and, where a provider has its own, the shape of errors. */
  headers: 'openai' as HeaderDialect,
  retryAfter: 'exact' as RetryAfter,
  /** Only these are accepted; null: any key, or none at all. */
  keys: null as readonly SimulatedKey[] | null,
  /** Refused with 401, whatever `keys` says. */
  revokedKeys: [] as readonly string[],
  /** Calls a key's money lasts for; then 429 insufficient_quota. Null: for ever. */
  insufficientQuotaAfter: null as number | null,
  /** With prices, `usage.cost` tells each call's cost in dollars, as OpenRouter does. */
  prices: null as Prices | null,
  /** Answers are padded to at least this length. */
  responseBytes: 0,
  routeFaults: [] as readonly RouteFault[],
  /** Only these models exist; null: any. */
  models: null as readonly string[] | null,
  /** Whether documents are obeyed. */
  directives: true,
  /** One JSON line is appended per call; null: none. */
  logFile: null as string | null,
};

const BATCH_DEFAULTS = {
  /** From creation to the end of a batch: a tenth of it validating, a tenth finalizing. */
  durationMs: 1_000,
  /**
   * Tokens (a quarter of the file's bytes) of all unfinished batches beyond which a further one fails with
   * `token_limit_exceeded`.
   */
  queueTokens: Number.POSITIVE_INFINITY,
  /** When a full queue tells: once a batch is validated, or already in answer to its creation. */
  queueFullAt: 'validation' as 'validation' | 'creation',
  /** What every batch meets. */
  faults: [] as readonly BatchFault[],
};

const BACKGROUND_DEFAULTS = {
  /** False: the server knows no such parameter. */
  isOffered: true,
  /** How long a response is kept once it is done. */
  expireAfterMs: Number.POSITIVE_INFINITY,
};

/** Each may be left out, or null for its default. */
type LeftOut<Settings> = { readonly [Name in keyof Settings]?: Settings[Name] | null };

export interface SimulatorOptions extends LeftOut<typeof DEFAULTS> {
  /** See `Limits`. Default 60,000; 1,000 under the Together dialect, which tells a second's limits. */
  readonly enforceOverMs?: number | null;
  /** Share of calls, 0 to 1, by what they meet, as in a directive: `{ "500": 0.02, "reset": 0.01 }`. */
  readonly errorRate?: Readonly<Record<string, number>> | null;
  readonly outage?: Outage | null;
  readonly batches?: LeftOut<typeof BATCH_DEFAULTS> | null;
  readonly background?: LeftOut<typeof BACKGROUND_DEFAULTS> | null;
}

/** Options that can be changed while the server runs. */
export type SimulatorChanges = Omit<SimulatorOptions, 'port' | 'logFile' | 'seed'>;

/** Options with every default filled in. */
export interface SimulatorSettings extends Limits, Readonly<typeof DEFAULTS> {
  readonly faults: readonly { readonly share: number; readonly directive: Directive }[];
  readonly outage: { readonly directive: Directive; readonly afterMs: number; readonly forMs: number } | null;
  readonly batches: Readonly<typeof BATCH_DEFAULTS>;
  readonly background: Readonly<typeof BACKGROUND_DEFAULTS>;
}

type Reader = (value: unknown) => boolean;

const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);
const isAmount = (value: unknown): boolean => isNumber(value) && value >= 0;
const isWhole = (value: unknown): boolean => isAmount(value) && Number.isInteger(value);
const isPositive = (value: unknown): boolean => isWhole(value) && value !== 0;
const isSwitch: Reader = (value) => typeof value === 'boolean';
const isText: Reader = (value) => typeof value === 'string' && value !== '';
/** Any directive but `-then-ok`: how often a fault strikes is for its share or its span to say. */
const isFault: Reader = (value) =>
  typeof value === 'string' && parseDirective(value)?.firstCalls === Number.POSITIVE_INFINITY;
const isOneOf =
  (words: readonly string[]): Reader =>
  (value) =>
    words.some((word) => word === value);

const isListOf =
  (isItem: Reader): Reader =>
  (value) =>
    Array.isArray(value) && value.every(isItem);

/** An object with exactly these fields; those whose name ends with `?` may be absent or null. */
const isShaped = (shape: Readonly<Record<string, Reader>>): Reader => {
  const fields = Object.entries(shape).map(([name, check]) => ({ name: name.replace('?', ''), check }));
  return (value) =>
    isJsonObject(value) &&
    Object.keys(value).every((name) => fields.some((field) => field.name === name)) &&
    fields.every(({ name, check }) => {
      const found = value[name] ?? null;
      return found === null ? Object.hasOwn(shape, `${name}?`) : check(found);
    });
};

const isRange: Reader = (value) =>
  isWhole(value) || (isShaped({ min: isWhole, max: isWhole })(value) && hasOrderedEnds(value));

const isKeys = isListOf(
  isShaped({
    ...{ key: isText, 'rpm?': isPositive, 'tpm?': isPositive, 'rpd?': isPositive },
    'insufficientQuotaAfter?': isWhole,
  }),
);

/** What each option must be, in words for the error and as a check. */
const RULES: Readonly<Record<keyof SimulatorOptions, readonly [expected: string, check: Reader]>> = {
  port: ['a port number from 0 to 65535', (value) => isWhole(value) && Number(value) <= 65_535],
  seed: ['a whole number of zero or more', isWhole],
  latencyMs: ['whole milliseconds, or {min, max}', isRange],
  latencyMsPerDocument: ['milliseconds', isAmount],
  latencyClimb: ['{beyondOpenCalls, msPerCall}', isShaped({ beyondOpenCalls: isWhole, msPerCall: isAmount })],
  outputTokens: ['a whole number of tokens, or {min, max}', isRange],
  rpm: ['a whole number above zero', isPositive],
  tpm: ['a whole number above zero', isPositive],
  rpd: ['a whole number above zero', isPositive],
  enforceOverMs: [
    'whole milliseconds from 1 to 60000',
    (value) => isPositive(value) && Number(value) <= MINUTE_MS,
  ],
  countRefused: ['true or false', isSwitch],
  charge: ['"used" or "cap"', isOneOf(['used', 'cap'])],
  headers: [`one of ${HEADER_DIALECTS.join(', ')}`, isOneOf(HEADER_DIALECTS)],
  retryAfter: [
    '"exact", "message", "none" or a number of seconds',
    (value) => isOneOf(['exact', 'message', 'none'])(value) || isAmount(value),
  ],
  errorRate: ['shares by fault, each a known directive, together at most 1', isErrorRate],
  keys: [
    'a list of {key, rpm?, tpm?, rpd?, insufficientQuotaAfter?}',
    (value) => isKeys(value) && (value as readonly unknown[]).length > 0,
  ],
  revokedKeys: ['a list of keys', isListOf(isText)],
  outage: [
    '{fault, afterMs?, forMs?}, the fault a known directive',
    isShaped({ fault: isFault, 'afterMs?': isAmount, 'forMs?': isAmount }),
  ],
  insufficientQuotaAfter: ['a whole number of calls', isWhole],
  prices: [
    '{inputMicroUsdPerToken, outputMicroUsdPerToken}',
    isShaped({ inputMicroUsdPerToken: isAmount, outputMicroUsdPerToken: isAmount }),
  ],
  responseBytes: ['a whole number of bytes', isWhole],
  models: ['a list of model names', isListOf(isText)],
  batches: [
    `{durationMs?, queueTokens?, queueFullAt?: validation or creation, faults?: some of ${BATCH_FAULTS.join(', ')}}`,
    isShaped({
      ...{ 'durationMs?': isWhole, 'queueTokens?': isWhole },
      ...{ 'queueFullAt?': isOneOf(['validation', 'creation']), 'faults?': isListOf(isOneOf(BATCH_FAULTS)) },
    }),
  ],
  background: [
    '{isOffered?, expireAfterMs?}',
    isShaped({ 'isOffered?': isSwitch, 'expireAfterMs?': isWhole }),
  ],
  routeFaults: [
    `a list of {route: ${ROUTE_NAMES.join(', ')}, fault: ${ROUTE_FAULTS.join(', ')}, after?, times?}`,
    isListOf(
      isShaped({
        ...{ route: isOneOf(ROUTE_NAMES), fault: isOneOf(ROUTE_FAULTS) },
        ...{ 'after?': isWhole, 'times?': isPositive },
      }),
    ),
  ],
  directives: ['true or false', isSwitch],
  logFile: ['a path', isText],
};

const FIXED_OPTIONS: readonly string[] = ['port', 'logFile', 'seed'] satisfies (keyof SimulatorOptions)[];

/**
 * Fills in the defaults.
 * @throws LlmBatchError `SIMULATOR_OPTION` naming the option that is unknown or out of bounds
 */
export function resolveOptions(options: SimulatorOptions): SimulatorSettings {
  checkOptions(options);
  const { headers, enforceOverMs, errorRate, outage, batches, background } = options;
  const directive = outage ? parseDirective(outage.fault) : null;
  return {
    ...filled(options, DEFAULTS),
    enforceOverMs: enforceOverMs ?? (headers === 'together' ? 1_000 : MINUTE_MS),
    faults: Object.entries(errorRate ?? {}).flatMap(([fault, share]) => {
      const struck = parseDirective(fault);
      return struck === null ? [] : [{ share, directive: struck }];
    }),
    outage: directive && {
      directive,
      afterMs: outage?.afterMs ?? 0,
      forMs: outage?.forMs ?? Number.POSITIVE_INFINITY,
    },
    batches: filled(batches ?? {}, BATCH_DEFAULTS),
    background: filled(background ?? {}, BACKGROUND_DEFAULTS),
  };
}

function filled<Settings extends object>(options: LeftOut<Settings>, defaults: Settings): Settings {
  const names = Object.keys(defaults) as (keyof Settings)[];
  return Object.fromEntries(names.map((name) => [name, options[name] ?? defaults[name]])) as Settings;
}

/**
 * Lays changes over options; what a change does not name stays.
 * @throws LlmBatchError `SIMULATOR_OPTION` for an option that is unknown, out of bounds or fixed at the start
 */
export function changeOptions(options: SimulatorOptions, changes: SimulatorChanges): SimulatorOptions {
  for (const name of Object.keys(changes)) {
    if (FIXED_OPTIONS.includes(name)) {
      throw usageError(
        'SIMULATOR_OPTION',
        `The simulator's option "${name}" is fixed once it runs.`,
        'Start another simulator with it.',
      );
    }
  }
  checkOptions(changes);
  return { ...options, ...changes };
}

function checkOptions(options: SimulatorOptions): void {
  if (!isJsonObject(options)) {
    throw usageError('SIMULATOR_OPTION', "The simulator's options must be an object.");
  }
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(RULES, name)) {
      throw usageError(
        'SIMULATOR_OPTION',
        `The simulator has no option "${name}".`,
        `Options are: ${Object.keys(RULES).join(', ')}.`,
      );
    }
    const [expected, check] = RULES[name as keyof SimulatorOptions];
    if (value !== null && value !== undefined && !check(value)) {
      throw usageError('SIMULATOR_OPTION', `The simulator's option "${name}" must be ${expected}.`);
    }
  }
}

function hasOrderedEnds(value: unknown): boolean {
  return isJsonObject(value) && Number(value['min']) <= Number(value['max']);
}

function isErrorRate(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  const shares = Object.values(value);
  if (!Object.keys(value).every(isFault) || !shares.every(isAmount)) return false;
  return shares.reduce<number>((sum, share) => sum + Number(share), 0) <= 1 + Number.EPSILON;
}
