/**
 * The one table of settings: flag, environment variable, key in `llm-batch.config.json`, default and help.
 * Whatever reads, prints or documents a setting reads this table.
 */
import { INPUT_FORMATS, type InputFormat } from '../core/input-format.js';
import {
  type FailureLimit,
  parseBytes,
  parseCount,
  parseCountOrAuto,
  parseDuration,
  parseFailureLimit,
  parseList,
  parseMoney,
  parseOneOf,
  parseSwitch,
  parseText,
} from './values.js';

export interface Settings {
  /** Null: `llm-batch.config.json` of the working folder, if there is one. */
  readonly config: string | null;
  readonly db: string;
  readonly model: string | null;
  readonly prompt: string | null;
  readonly promptFile: string | null;
  readonly system: string | null;
  /** Null: the folder of the input. */
  readonly imageFolder: string | null;
  /** Documents may name images anywhere, not only in that folder. */
  readonly allowAnyPath: boolean;
  /** Whole requests beside a prompt are sent as they are; else every line is a record. */
  readonly requestsAsTheyAre: boolean;
  readonly idField: string | null;
  /** A JSON Schema file that every answer has to fit. */
  readonly schema: string | null;
  readonly jsonMode: boolean;
  readonly repair: boolean;
  /** Null: by the ending of the input's name. */
  readonly inputFormat: InputFormat | null;
  /** What is asked of a database: its rows are the documents. */
  readonly query: string | null;
  readonly maxLineBytes: number;
  readonly baseUrl: string | null;
  readonly apiKeyEnv: readonly string[];
  /** A price file that overrules the packaged prices. */
  readonly prices: string | null;
  /** Calls open at once; `auto` finds out how many pay off. */
  readonly concurrency: number | 'auto';
  /** Requests per minute; null: no limit of ours. */
  readonly rpm: number | null;
  /** Tokens per minute, in and out together; null: no limit of ours. */
  readonly tpm: number | null;
  /** Requests in any 24 hours; null: no limit of ours. */
  readonly rpd: number | null;
  readonly maxAttempts: number;
  readonly timeoutMs: number;
  readonly maxWaitMs: number;
  readonly graceMs: number;
  readonly maxCostMicroUsd: number | null;
  readonly maxTokensTotal: number | null;
  readonly maxFailures: FailureLimit | null;
  readonly dedupe: boolean;
  readonly reuse: boolean;
  readonly guard: boolean;
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly logJson: boolean;
  readonly color: boolean;
  readonly debug: boolean;
}

export type SettingGroup = 'store' | 'request' | 'input' | 'connection' | 'pacing' | 'budget' | 'display';

export interface SettingDefinition<Name extends keyof Settings = keyof Settings> {
  readonly name: Name;
  readonly group: SettingGroup;
  /** As commander takes it, e.g. `--rpm <n>`. */
  readonly flags: string;
  readonly environment: string;
  readonly help: string;
  readonly initial: Settings[Name];
  /** How the default is written in help; empty: not shown. */
  readonly initialText: string;
  /**
   * What the setting gives away: a server is somebody to send documents and keys to, a path names a file or folder.
   * A configuration that the user has neither named nor trusted may not say the one at all, and the other only
   * inside its folder. Absent for all that changes nothing but how the program works.
   */
  readonly reaches?: 'server' | 'path';
  /** Text or JSON value to the setting's value; @throws Error whose message completes "expected …". */
  readonly parse: (value: unknown) => Settings[Name];
}

function define<Name extends keyof Settings>(definition: SettingDefinition<Name>): SettingDefinition<Name> {
  return definition;
}

const MEBIBYTE = 1024 * 1024;

export const SETTINGS: readonly SettingDefinition[] = [
  define({
    name: 'config',
    group: 'store',
    flags: '--config <file>',
    environment: 'LLM_BATCH_CONFIG',
    help: 'settings file to be used as it is; the one of the working folder has to be trusted first (`llm-batch trust`)',
    initial: null,
    initialText: './llm-batch.config.json',
    parse: parseText,
  }),
  define({
    name: 'db',
    group: 'store',
    flags: '--db <file>',
    environment: 'LLM_BATCH_DB',
    help: 'the store: a SQLite file',
    initial: './llm-batch.db',
    initialText: './llm-batch.db',
    reaches: 'path',
    parse: parseText,
  }),
  define({
    name: 'model',
    group: 'request',
    flags: '--model <name>',
    environment: 'LLM_BATCH_MODEL',
    help: 'model for documents that name none',
    initial: null,
    initialText: '',
    parse: parseText,
  }),
  define({
    name: 'prompt',
    group: 'request',
    flags: '--prompt <template>',
    environment: 'LLM_BATCH_PROMPT',
    help: 'user message; {{field}} and {{a.b}} are filled from each document, {{image field}} with its images or PDFs',
    initial: null,
    initialText: '',
    parse: parseText,
  }),
  define({
    name: 'promptFile',
    group: 'request',
    flags: '--prompt-file <file>',
    environment: 'LLM_BATCH_PROMPT_FILE',
    help: 'the same, read from a file',
    initial: null,
    initialText: '',
    reaches: 'path',
    parse: parseText,
  }),
  define({
    name: 'system',
    group: 'request',
    flags: '--system <template>',
    environment: 'LLM_BATCH_SYSTEM',
    help: 'system message, a template too',
    initial: null,
    initialText: '',
    parse: parseText,
  }),
  define({
    name: 'imageFolder',
    group: 'request',
    flags: '--image-folder <folder>',
    environment: 'LLM_BATCH_IMAGE_FOLDER',
    help: 'where the images are: relative paths start there, and no others are taken',
    initial: null,
    initialText: 'the folder of the input',
    reaches: 'path',
    parse: parseText,
  }),
  define({
    name: 'allowAnyPath',
    group: 'request',
    flags: '--allow-any-path',
    environment: 'LLM_BATCH_ALLOW_ANY_PATH',
    help: 'documents may name images outside that folder too',
    initial: false,
    initialText: '',
    reaches: 'path',
    parse: parseSwitch,
  }),
  define({
    name: 'requestsAsTheyAre',
    group: 'request',
    flags: '--requests-as-they-are',
    environment: 'LLM_BATCH_REQUESTS_AS_THEY_ARE',
    help: 'with a prompt: lines that are whole requests are sent without it, with the model and tools that they name',
    initial: false,
    initialText: '',
    reaches: 'server',
    parse: parseSwitch,
  }),
  define({
    name: 'idField',
    group: 'request',
    flags: '--id-field <field>',
    environment: 'LLM_BATCH_ID_FIELD',
    help: "field that names a document, instead of 'custom_id' or 'id'",
    initial: null,
    initialText: '',
    parse: parseText,
  }),
  define({
    name: 'schema',
    group: 'request',
    flags: '--schema <file>',
    environment: 'LLM_BATCH_SCHEMA',
    help: 'ask for answers that fit this JSON Schema, and check each',
    initial: null,
    initialText: '',
    reaches: 'path',
    parse: parseText,
  }),
  define({
    name: 'jsonMode',
    group: 'request',
    flags: '--json-mode',
    environment: 'LLM_BATCH_JSON_MODE',
    help: 'ask for any JSON object, and check that each answer is one',
    initial: false,
    initialText: '',
    parse: parseSwitch,
  }),
  define({
    name: 'repair',
    group: 'request',
    flags: '--repair',
    environment: 'LLM_BATCH_REPAIR',
    help: 'tell the model what was wrong when an answer that does not fit is tried again',
    initial: false,
    initialText: '',
    parse: parseSwitch,
  }),
  define({
    name: 'inputFormat',
    group: 'input',
    flags: '--input-format <format>',
    environment: 'LLM_BATCH_INPUT_FORMAT',
    help: 'jsonl, csv, tsv, text, parquet or sqlite; for standard input and names that do not say it',
    initial: null,
    initialText: 'by the name',
    parse: parseOneOf(INPUT_FORMATS),
  }),
  define({
    name: 'query',
    group: 'input',
    flags: '--query <sql>',
    environment: 'LLM_BATCH_QUERY',
    help: 'SELECT statement whose rows are the documents of a SQLite database',
    initial: null,
    initialText: '',
    parse: parseText,
  }),
  define({
    name: 'maxLineBytes',
    group: 'input',
    flags: '--max-line-bytes <size>',
    environment: 'LLM_BATCH_MAX_LINE_BYTES',
    help: 'longest input line, row or text file, e.g. 64MiB',
    initial: 32 * MEBIBYTE,
    initialText: '32MiB',
    parse: parseBytes,
  }),
  define({
    name: 'baseUrl',
    group: 'connection',
    flags: '--base-url <url>',
    environment: 'OPENAI_BASE_URL',
    help: 'an OpenAI-compatible server, e.g. http://localhost:11434/v1',
    initial: null,
    initialText: '',
    reaches: 'server',
    parse: parseText,
  }),
  define({
    name: 'apiKeyEnv',
    group: 'connection',
    flags: '--api-key-env <name>',
    environment: 'LLM_BATCH_API_KEY_ENV',
    help: 'environment variable that holds the API key; several, with commas between, make a lane each',
    initial: ['OPENAI_API_KEY'],
    initialText: 'OPENAI_API_KEY',
    reaches: 'server',
    parse: parseList,
  }),
  define({
    name: 'prices',
    group: 'connection',
    flags: '--prices <file>',
    environment: 'LLM_BATCH_PRICES',
    help: "prices of your own, or LiteLLM's table; what it names overrules the packaged prices",
    initial: null,
    initialText: '',
    reaches: 'path',
    parse: parseText,
  }),
  define({
    name: 'concurrency',
    group: 'pacing',
    flags: '--concurrency <n|auto>',
    environment: 'LLM_BATCH_CONCURRENCY',
    help: 'calls open at once; auto finds out how many pay off',
    initial: 16,
    initialText: '16',
    parse: parseCountOrAuto,
  }),
  define({
    name: 'rpm',
    group: 'pacing',
    flags: '--rpm <n>',
    environment: 'LLM_BATCH_RPM',
    help: 'requests in any 60 seconds',
    initial: null,
    initialText: 'no limit',
    parse: parseCount,
  }),
  define({
    name: 'tpm',
    group: 'pacing',
    flags: '--tpm <n>',
    environment: 'LLM_BATCH_TPM',
    help: 'tokens, in and out, in any 60 seconds',
    initial: null,
    initialText: 'no limit',
    parse: parseCount,
  }),
  define({
    name: 'rpd',
    group: 'pacing',
    flags: '--rpd <n>',
    environment: 'LLM_BATCH_RPD',
    help: 'requests in any 24 hours',
    initial: null,
    initialText: 'no limit',
    parse: parseCount,
  }),
  define({
    name: 'maxAttempts',
    group: 'pacing',
    flags: '--max-attempts <n>',
    environment: 'LLM_BATCH_MAX_ATTEMPTS',
    help: 'attempts a document may use before it counts as failed',
    initial: 5,
    initialText: '5',
    parse: parseCount,
  }),
  define({
    name: 'timeoutMs',
    group: 'pacing',
    flags: '--timeout <time>',
    environment: 'LLM_BATCH_TIMEOUT',
    help: 'one call, headers and body together',
    initial: 300_000,
    initialText: '300s',
    parse: parseDuration,
  }),
  define({
    name: 'maxWaitMs',
    group: 'pacing',
    flags: '--max-wait <time>',
    environment: 'LLM_BATCH_MAX_WAIT',
    help: 'how long limits may hold one document back, and a server be gone, before that is given up',
    initial: 24 * 3_600_000,
    initialText: '24h',
    parse: parseDuration,
  }),
  define({
    name: 'graceMs',
    group: 'pacing',
    flags: '--grace <time>',
    environment: 'LLM_BATCH_GRACE',
    help: 'how long open calls may finish after Ctrl-C',
    initial: 30_000,
    initialText: '30s',
    parse: parseDuration,
  }),
  define({
    name: 'guard',
    group: 'pacing',
    flags: '--no-guard',
    environment: 'LLM_BATCH_GUARD',
    help: 'go on even when the calls all end in the same bad way',
    initial: true,
    initialText: '',
    parse: parseSwitch,
  }),
  define({
    name: 'maxCostMicroUsd',
    group: 'budget',
    flags: '--max-cost <dollars>',
    environment: 'LLM_BATCH_MAX_COST',
    help: 'stop before the run could cost more, open calls included',
    initial: null,
    initialText: 'no cap',
    parse: parseMoney,
  }),
  define({
    name: 'maxTokensTotal',
    group: 'budget',
    flags: '--max-tokens-total <n>',
    environment: 'LLM_BATCH_MAX_TOKENS_TOTAL',
    help: 'the same for tokens, in and out',
    initial: null,
    initialText: 'no cap',
    parse: parseCount,
  }),
  define({
    name: 'maxFailures',
    group: 'budget',
    flags: '--max-failures <n|percent>',
    environment: 'LLM_BATCH_MAX_FAILURES',
    help: 'stop when more documents have failed, e.g. 100 or 5%',
    initial: null,
    initialText: 'no limit',
    parse: parseFailureLimit,
  }),
  define({
    name: 'dedupe',
    group: 'budget',
    flags: '--dedupe',
    environment: 'LLM_BATCH_DEDUPE',
    help: 'documents whose requests are equal share one call and its answer',
    initial: false,
    initialText: '',
    parse: parseSwitch,
  }),
  define({
    name: 'reuse',
    group: 'budget',
    flags: '--reuse',
    environment: 'LLM_BATCH_REUSE',
    help: 'take answers that earlier runs in the same store got to the same request',
    initial: false,
    initialText: '',
    parse: parseSwitch,
  }),
  define({
    name: 'quiet',
    group: 'display',
    flags: '--quiet',
    environment: 'LLM_BATCH_QUIET',
    help: 'errors only',
    initial: false,
    initialText: '',
    parse: parseSwitch,
  }),
  define({
    name: 'verbose',
    group: 'display',
    flags: '--verbose',
    environment: 'LLM_BATCH_VERBOSE',
    help: 'a line for every failed call',
    initial: false,
    initialText: '',
    parse: parseSwitch,
  }),
  define({
    name: 'logJson',
    group: 'display',
    flags: '--log-json',
    environment: 'LLM_BATCH_LOG_JSON',
    help: 'progress and notices as JSON lines on stderr',
    initial: false,
    initialText: '',
    parse: parseSwitch,
  }),
  define({
    name: 'color',
    group: 'display',
    flags: '--no-color',
    environment: 'LLM_BATCH_COLOR',
    help: 'no colours (NO_COLOR works too)',
    initial: true,
    initialText: '',
    parse: parseSwitch,
  }),
  define({
    name: 'debug',
    group: 'display',
    flags: '--debug',
    environment: 'LLM_BATCH_DEBUG',
    help: 'stack traces with errors',
    initial: false,
    initialText: '',
    parse: parseSwitch,
  }),
] as readonly SettingDefinition[];

export function settingsOf(groups: readonly SettingGroup[]): readonly SettingDefinition[] {
  return SETTINGS.filter((setting) => groups.includes(setting.group));
}
