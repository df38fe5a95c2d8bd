/**
 * The one table of settings: flag, environment variable, key in `llm-batch.config.json`, default and help. Whatever
 * reads, stores, prints or documents a setting reads this table, and the types of all settings derive from it: a new
 * one is a line here, and a line where it is used.
 */
import { ENDPOINT_NAMES } from '../core/endpoint-name.js';
import { INPUT_FORMATS } from '../core/input-format.js';
import { amount, either, objectOf, oneOf, orNull, positive, type Shape, text, truth } from '../core/shape.js';
import { parseHeaderName, parseHeaders } from './header-texts.js';
import {
  parseBytes,
  parseCount,
  parseCountOrAuto,
  parseDuration,
  parseFailureLimit,
  parseHosts,
  parseList,
  parseMoney,
  parseNumber,
  parseOneOf,
  parsePort,
  parseSwitch,
  parseText,
  parseTimeToLive,
  parseUrlPath,
} from './values.js';

/** Those of `pacing`, `remote`, `budget` and `sharing` are stored with a run, whole; `resume` may change them. */
export type SettingGroup =
  | 'store'
  | 'request'
  | 'input'
  | 'connection'
  | 'pacing'
  | 'remote'
  | 'budget'
  | 'sharing'
  | 'display'
  | 'service'
  | 'client';

interface SettingLine<Value, Initial extends Value | null> {
  /** As commander takes it, e.g. `--rpm <n>`. */
  readonly flags: string;
  /** Of one letter, e.g. `-m`. */
  readonly short?: string;
  /** Absent: after the flag, `LLM_BATCH_RPM`. */
  readonly environment?: string;
  readonly help: string;
  readonly initial: Initial;
  /** The flag may be given several times; `parse` gets the list. */
  readonly repeats?: boolean;
  /** How the default is written in help; absent: as it is where that is a text or a number, else not at all. */
  readonly initialText?: string | undefined;
  /**
   * What the setting gives away: a server is somebody to send documents and keys to, a path names a file or folder.
   * A configuration that the user has neither named nor trusted may not say the one at all, and the other only
   * inside its folder. Absent for all that changes nothing but how the program works.
   */
  readonly reaches?: 'server' | 'path';
  /** Text or JSON value to the setting's value; @throws Error whose message completes "expected …". */
  readonly parse: (value: unknown) => Value;
  /** What may be read back, where its group is stored with a run. */
  readonly stored?: Shape;
}

/** `null` where it is the default: nothing was said. */
function setting<Group extends SettingGroup, Value, Initial extends Value | null>(
  group: Group,
  line: SettingLine<Value, Initial>,
) {
  const flag = /^--(?:no-)?([a-z-]+)/.exec(line.flags)?.[1] ?? '';
  const environment = line.environment ?? `LLM_BATCH_${flag.toUpperCase().replaceAll('-', '_')}`;
  const isPlain = typeof line.initial === 'string' || typeof line.initial === 'number';
  const initialText = line.initialText ?? (isPlain ? String(line.initial) : undefined);
  const key = flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return { ...line, group, environment, key, initialText };
}

const MEBIBYTE = 1024 * 1024;

/** What many settings have in common: a default, how they are read, what may be read back of those that are stored. */
const OFF = { initial: false, parse: parseSwitch, stored: truth } as const;
const NO_TEXT = { initial: null, parse: parseText } as const;
const NO_COUNT = { initial: null, parse: parseCount, stored: orNull(positive) } as const;
const NO_TIME = { initial: null, parse: parseDuration, stored: orNull(amount) } as const;
const A_COUNT = { parse: parseCount, stored: positive } as const;
const A_TIME = { parse: parseDuration, stored: amount } as const;

const TABLE = {
  config: setting('store', {
    flags: '--config <file>',
    help: 'settings file to be used as it is; the one of the working folder has to be trusted first (`llm-batch trust`)',
    initialText: './llm-batch.config.json',
    ...NO_TEXT,
  }),
  envFile: setting('store', {
    flags: '--env-file <file>',
    help: 'variables for what the environment does not set, keys too; the .env of the working folder has to be trusted first',
    initialText: './.env',
    reaches: 'server',
    ...NO_TEXT,
  }),
  db: setting('store', {
    flags: '--db <file>',
    help: 'the store: a SQLite file',
    initial: './llm-batch.db',
    reaches: 'path',
    parse: parseText,
  }),
  store: setting('store', {
    flags: '--store <url>',
    help: 'the store in place of --db: a file, or postgres://user@host:5432/database, which many machines may share; its password is best in PGPASSWORD or ~/.pgpass',
    reaches: 'server',
    ...NO_TEXT,
  }),
  schemaName: setting('store', {
    flags: '--schema-name <name>',
    help: 'schema of the database that holds the store',
    initial: 'llm_batch',
    parse: parseText,
  }),
  endpoint: setting('request', {
    flags: '--endpoint <name>',
    help: `where documents are sent: ${ENDPOINT_NAMES.join(', ')}`,
    initial: null,
    initialText: 'what each line shows, else chat',
    parse: parseOneOf(ENDPOINT_NAMES),
  }),
  model: setting('request', {
    flags: '--model <name>',
    short: '-m',
    help: 'model for documents that name none',
    ...NO_TEXT,
  }),
  prompt: setting('request', {
    flags: '--prompt <template>',
    short: '-p',
    help: 'user message; {{field}} and {{a.b}} are filled from each document, {{image field}} with its images or PDFs',
    ...NO_TEXT,
  }),
  promptFile: setting('request', {
    flags: '--prompt-file <file>',
    help: 'the same, read from a file',
    reaches: 'path',
    ...NO_TEXT,
  }),
  system: setting('request', {
    flags: '--system <template>',
    help: 'system message, a template too',
    ...NO_TEXT,
  }),
  temperature: setting('request', {
    flags: '--temperature <n>',
    help: 'the same as --param temperature=N',
    initial: null,
    parse: parseNumber,
  }),
  maxTokens: setting('request', {
    flags: '--max-tokens <n>',
    help: 'most tokens of an answer, by the name that the endpoint has for it: max_tokens, or max_output_tokens of responses',
    initial: null,
    parse: parseCount,
  }),
  imageFolder: setting('request', {
    flags: '--image-folder <folder>',
    help: 'where the images are: relative paths start there, and no others are taken',
    initialText: 'the folder of the input',
    reaches: 'path',
    ...NO_TEXT,
  }),
  allowAnyPath: setting('request', {
    flags: '--allow-any-path',
    help: 'documents may name images outside that folder too',
    reaches: 'path',
    ...OFF,
  }),
  requestsAsTheyAre: setting('request', {
    flags: '--requests-as-they-are',
    help: 'with a prompt: lines that are whole requests are sent without it, with the model and tools that they name',
    reaches: 'server',
    ...OFF,
  }),
  idField: setting('request', {
    flags: '--id-field <field>',
    help: "field that names a document, instead of 'custom_id' or 'id'",
    ...NO_TEXT,
  }),
  schema: setting('request', {
    flags: '--schema <file>',
    help: 'ask for answers that fit this JSON Schema, and check each',
    reaches: 'path',
    ...NO_TEXT,
  }),
  jsonMode: setting('request', {
    flags: '--json-mode',
    help: 'ask for any JSON object, and check that each answer is one',
    ...OFF,
  }),
  repair: setting('request', {
    flags: '--repair',
    help: 'tell the model what was wrong when an answer that does not fit is tried again',
    ...OFF,
  }),
  inputFormat: setting('input', {
    flags: '--input-format <format>',
    help: 'jsonl, csv, tsv, text, parquet or sqlite; for standard input and names that do not say it',
    initial: null,
    initialText: 'by the name',
    parse: parseOneOf(INPUT_FORMATS),
  }),
  query: setting('input', {
    flags: '--query <sql>',
    help: 'SELECT statement whose rows are the documents of a SQLite database',
    ...NO_TEXT,
  }),
  maxLineBytes: setting('input', {
    flags: '--max-line-bytes <size>',
    help: 'longest input line, row or text file, e.g. 64MiB',
    initial: 32 * MEBIBYTE,
    initialText: '32MiB',
    parse: parseBytes,
  }),
  baseUrl: setting('connection', {
    flags: '--base-url <url>',
    environment: 'OPENAI_BASE_URL',
    help: 'an OpenAI-compatible server, e.g. http://localhost:11434/v1',
    reaches: 'server',
    ...NO_TEXT,
  }),
  apiKeyEnv: setting('connection', {
    flags: '--api-key-env <name>',
    help: 'environment variable that holds the API key; several, with commas between, make a lane each',
    initial: ['OPENAI_API_KEY'],
    initialText: 'OPENAI_API_KEY',
    reaches: 'server',
    parse: parseList,
  }),
  apiKeyHeader: setting('connection', {
    flags: '--api-key-header <name>',
    help: 'header that carries the key as it is, e.g. api-key for Azure',
    initial: null,
    initialText: 'Authorization, as a bearer token',
    reaches: 'server',
    parse: parseHeaderName,
  }),
  headers: setting('connection', {
    flags: '--header <name:value>',
    help: "header that goes along with every call, e.g. 'X-Key: $NAME' with the value of a variable; may be repeated",
    initial: null,
    repeats: true,
    reaches: 'server',
    parse: parseHeaders,
  }),
  prices: setting('connection', {
    flags: '--prices <file>',
    help: "prices of your own, or LiteLLM's table; what it names overrules the packaged prices",
    reaches: 'path',
    ...NO_TEXT,
  }),
  concurrency: setting('pacing', {
    flags: '--concurrency <n|auto>',
    help: 'calls open at once; auto finds out how many pay off',
    initial: 16,
    parse: parseCountOrAuto,
    stored: either(positive, oneOf('auto')),
  }),
  connections: setting('pacing', {
    flags: '--connections <n>',
    help: 'connections to each server, kept open between calls; calls beyond them wait for one',
    initialText: 'as many as calls',
    ...NO_COUNT,
  }),
  rpm: setting('pacing', {
    flags: '--rpm <n>',
    help: 'requests in any 60 seconds',
    initialText: 'no limit',
    ...NO_COUNT,
  }),
  tpm: setting('pacing', {
    flags: '--tpm <n>',
    help: 'tokens, in and out, in any 60 seconds',
    initialText: 'no limit',
    ...NO_COUNT,
  }),
  rpd: setting('pacing', {
    flags: '--rpd <n>',
    help: 'requests in any 24 hours',
    initialText: 'no limit',
    ...NO_COUNT,
  }),
  groupUrl: setting('pacing', {
    flags: '--group-url <path>',
    help: 'where the server takes several requests in one call, below the base URL, e.g. /batch; of any endpoint',
    initial: null,
    parse: parseUrlPath,
    stored: orNull(text),
  }),
  groupMin: setting('pacing', {
    flags: '--group-min <n>',
    help: 'documents in one call at first, and at least, where the endpoint takes several',
    initial: 10,
    ...A_COUNT,
  }),
  groupMax: setting('pacing', {
    flags: '--group-max <n>',
    help: 'documents in one call at most; 1 sends each alone',
    initial: 100,
    ...A_COUNT,
  }),
  targetLatencyMs: setting('pacing', {
    flags: '--target-latency <time>',
    help: 'what a call for several documents should take: under 0.3 of it they become more, over 0.8 fewer',
    initial: 5_000,
    initialText: '5s',
    parse: parseDuration,
    stored: positive,
  }),
  groupWaitMs: setting('pacing', {
    flags: '--group-wait <time>',
    help: 'how long a call that is not full waits for more documents',
    initial: 100,
    initialText: '100ms',
    ...A_TIME,
  }),
  maxAttempts: setting('pacing', {
    flags: '--max-attempts <n>',
    help: 'attempts a document may use before it counts as failed',
    initial: 5,
    ...A_COUNT,
  }),
  timeoutMs: setting('pacing', {
    flags: '--timeout <time>',
    help: 'one call, headers and body together',
    initial: 300_000,
    initialText: '300s',
    ...A_TIME,
  }),
  connectTimeoutMs: setting('pacing', {
    flags: '--connect-timeout <time>',
    help: 'to open a connection',
    initial: 10_000,
    initialText: '10s',
    ...A_TIME,
  }),
  headersTimeoutMs: setting('pacing', {
    flags: '--headers-timeout <time>',
    help: "until an answer's headers; within the time of the whole call",
    initialText: 'no limit of its own',
    ...NO_TIME,
  }),
  bodyTimeoutMs: setting('pacing', {
    flags: '--body-timeout <time>',
    help: "between two parts of an answer's body",
    initialText: 'no limit of its own',
    ...NO_TIME,
  }),
  keepAliveMs: setting('pacing', {
    flags: '--keep-alive <time>',
    help: 'how long an idle connection is kept; less than after which the server hangs up',
    initial: 4_000,
    initialText: '4s',
    ...A_TIME,
  }),
  maxWaitMs: setting('pacing', {
    flags: '--max-wait <time>',
    help: 'how long limits may hold one document back, and a server be gone, before that is given up',
    initial: 24 * 3_600_000,
    initialText: '24h',
    ...A_TIME,
  }),
  graceMs: setting('pacing', {
    flags: '--grace <time>',
    help: 'how long open calls may finish after Ctrl-C',
    initial: 30_000,
    initialText: '30s',
    ...A_TIME,
  }),
  guard: setting('pacing', {
    flags: '--no-guard',
    help: 'go on even when the calls all end in the same bad way',
    initial: true,
    parse: parseSwitch,
    stored: orNull(truth),
  }),
  remote: setting('remote', {
    flags: '--remote',
    help: "hand documents in as batches of the provider's Batch API, at half the price and done within a day",
    ...OFF,
  }),
  remoteMax: setting('remote', {
    flags: '--remote-max <n>',
    help: 'batches at the provider at once',
    initial: 10,
    ...A_COUNT,
  }),
  background: setting('remote', {
    flags: '--background',
    help: 'with --endpoint responses: the server works on each call by itself, and is asked for the answer',
    ...OFF,
  }),
  keepRemote: setting('remote', {
    flags: '--keep-remote',
    help: "leave at the provider what is of no more use: background responses, files of batches' requests",
    ...OFF,
  }),
  pollIntervalMs: setting('remote', {
    flags: '--poll-interval <time>',
    help: 'how often a batch or a background response is asked for',
    initialText: 'ever more seldom, a batch from 5s to 5m, a response from 1s to 30s',
    initial: null,
    parse: parseDuration,
    stored: orNull(positive),
  }),
  finishDirectByMs: setting('remote', {
    flags: '--finish-direct-by <time>',
    help: 'batches that are not done so long after they were begun are cancelled, and what is left is sent directly',
    initialText: 'never',
    initial: null,
    parse: parseDuration,
    stored: orNull(positive),
  }),
  maxCostMicroUsd: setting('budget', {
    flags: '--max-cost <dollars>',
    help: 'stop before the run could cost more, open calls included',
    initial: null,
    initialText: 'no cap',
    parse: parseMoney,
    stored: orNull(amount),
  }),
  maxTokensTotal: setting('budget', {
    flags: '--max-tokens-total <n>',
    help: 'the same for tokens, in and out',
    initial: null,
    initialText: 'no cap',
    parse: parseCount,
    stored: orNull(amount),
  }),
  maxFailures: setting('budget', {
    flags: '--max-failures <n|percent>',
    help: 'stop when more documents have failed, e.g. 100 or 5%',
    initial: null,
    initialText: 'no limit',
    parse: parseFailureLimit,
    stored: orNull(either(objectOf({ documents: amount }), objectOf({ share: amount }))),
  }),
  dedupe: setting('sharing', {
    flags: '--dedupe',
    help: 'documents whose requests are equal share one call and its answer',
    ...OFF,
  }),
  reuse: setting('sharing', {
    flags: '--reuse',
    help: 'take answers that earlier runs in the same store got to the same request',
    ...OFF,
  }),
  quiet: setting('display', { flags: '--quiet', help: 'errors only', ...OFF }),
  verbose: setting('display', { flags: '--verbose', help: 'a line for every failed call', ...OFF }),
  logJson: setting('display', {
    flags: '--log-json',
    help: 'progress and notices as JSON lines on stderr',
    ...OFF,
  }),
  color: setting('display', {
    flags: '--no-color',
    help: 'no colours (NO_COLOR works too)',
    initial: true,
    parse: parseSwitch,
  }),
  debug: setting('display', { flags: '--debug', help: 'stack traces with errors', ...OFF }),
  host: setting('service', {
    flags: '--host <address>',
    help: 'address to listen on; one that others reach needs LLM_BATCH_SERVE_TOKENS, with commas between',
    initial: '127.0.0.1',
    reaches: 'server',
    parse: parseText,
  }),
  port: setting('service', {
    flags: '--port <n>',
    help: 'port to listen on; 0 takes a free one',
    initial: 8080,
    parse: parsePort,
  }),
  drain: setting('service', {
    flags: '--no-drain',
    help: 'only take tasks; workers send them',
    initial: true,
    parse: parseSwitch,
  }),
  ttlMs: setting('service', {
    flags: '--ttl <time>',
    help: 'how long a result is kept after its task has ended',
    initial: 24 * 3_600_000,
    initialText: '24h',
    parse: parseTimeToLive,
  }),
  maxBacklog: setting('service', {
    flags: '--max-backlog <n>',
    help: 'documents that may wait at once; more are refused with 503',
    initial: 1_000_000,
    initialText: '1m',
    parse: parseCount,
  }),
  allowWebhookHosts: setting('service', {
    flags: '--allow-webhook-host <host>',
    help: 'host or host:port of a webhook that may be inside, and take http; may be repeated',
    initial: null,
    initialText: 'none: public addresses and https only',
    repeats: true,
    reaches: 'server',
    parse: parseHosts,
  }),
  server: setting('client', {
    flags: '--server <url>',
    help: 'where `llm-batch serve` listens; its token stands in LLM_BATCH_SERVER_TOKEN',
    initial: 'http://127.0.0.1:8080',
    reaches: 'server',
    parse: parseText,
  }),
} as const;

type Table = typeof TABLE;
type ValueOf<Line> =
  Line extends SettingLine<infer Value, infer Initial>
    ? Value | (null extends Initial ? null : never)
    : never;

export type Settings = { readonly [Name in keyof Table]: ValueOf<Table[Name]> };

/** The settings of one group. */
export type SettingsOf<Group extends SettingGroup> = {
  readonly [Name in keyof Table as Table[Name]['group'] extends Group ? Name : never]: Settings[Name];
};

export interface SettingDefinition extends SettingLine<unknown, unknown> {
  readonly name: keyof Settings;
  readonly group: SettingGroup;
  readonly environment: string;
  /** After the flag, `maxCost` for `--max-cost`: in a configuration, and commander's name for it. */
  readonly key: string;
}

export const SETTINGS: readonly SettingDefinition[] = Object.entries(TABLE).map(([name, line]) => ({
  ...line,
  name: name as keyof Settings,
}));

export function settingsIn(groups: readonly SettingGroup[]): readonly SettingDefinition[] {
  return SETTINGS.filter((each) => groups.includes(each.group));
}

/** Those of one group, to be handed down whole. */
export function pickGroup<Group extends SettingGroup>(settings: Settings, group: Group): SettingsOf<Group> {
  const picked = settingsIn([group]).map(({ name }) => [name, settings[name]]);
  return Object.fromEntries(picked) as SettingsOf<Group>;
}

/** What may be read back of a group that is stored. */
export function storedGroup(group: SettingGroup): Shape {
  const shapes = settingsIn([group]).flatMap(({ name, stored }) => (stored ? [[name, stored] as const] : []));
  return objectOf(Object.fromEntries(shapes));
}
