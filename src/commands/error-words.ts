/**
 * The way out of an error in a terminal's words: commands and flags. Whoever throws an error names its code and the
 * facts; a server would have other words for them.
 */
import type { ErrorFacts, WayOut } from '../core/errors.js';
import { STANDARD_INPUT_NAME } from '../core/input-name.js';
import { shellWord } from '../ui/next-command.js';

type Words = (facts: ErrorFacts, hint: string | undefined) => string | undefined;

const OWN_DISK = 'Keep the store on a disk of this machine: --db /var/tmp/llm-batch.db';
export const WAYS_OUT: Readonly<Record<string, Words>> = {
  // Settings of a run.
  BASE_URL_CREDENTIALS: () =>
    'leave it out of the address and name an environment variable that holds it: --api-key-env NAME',
  BASE_URL_INVALID: () => 'give the whole address, e.g. --base-url http://localhost:11434/v1',
  HEADER_SECRET: ({ name }) =>
    `put it into an environment variable and name that, in single quotes: --header '${name}: $NAME'`,
  KEY_MISSING: ({ variables, otherName, otherKey, otherUrl }) =>
    otherKey !== undefined
      ? `${otherKey} is set, so for ${otherName}: --base-url ${otherUrl} --api-key-env ${otherKey} --model NAME; for OpenAI: ${variables}`
      : `${variables}, or name a server of your own with --base-url http://localhost:11434/v1, or rehearse without calling anybody with --simulate`,
  KEY_NAME_INVALID: () =>
    'give the name of the variable that holds the key, never the key itself: --api-key-env OPENAI_API_KEY',
  BATCH_LANE_MISSING: ({ lane }) =>
    `name the key and the server again that it was handed in with ('${lane}'): --api-key-env NAME --base-url URL`,
  REMOTE_UNAVAILABLE: () => 'leave out --remote: the documents are sent directly',
  OUTPUT_CAP_OVER_LIMIT: () =>
    'lower --param max_tokens (or max_completion_tokens), or raise --tpm to what the provider allows',
  PRICE_UNKNOWN: ({ serviceTier }) =>
    `give its price with --prices FILE, ${serviceTier === null ? '' : 'ask for another service_tier, '}or cap tokens with --max-tokens-total`,
  PRICES_UNREADABLE: () => 'Give the path of a JSON file to --prices.',

  // The service and its clients.
  SERVE_TOKENS: ({ isOfFigures }) =>
    `export LLM_BATCH_SERVE_TOKENS=…, a long random word, or several with commas between; or ${isOfFigures === true ? 'give --metrics a port alone' : 'leave out --host'}`,
  SERVE_SECRET: () => 'export LLM_BATCH_WEBHOOK_SECRET=whsec_$(openssl rand -base64 32)',
  SERVE_LISTEN: ({ isOfFigures }) =>
    `choose another with ${isOfFigures === true ? '--metrics HOST:PORT' : '--port, or --host'}`,
  SERVICE_UNREACHABLE: () => 'start one with llm-batch serve, or name it with --server URL',
  TASK_MISSING: () =>
    'Give the id that the service answered with, or leave it out: `llm-batch webhooks list`.',
  SERVER_ADDRESS: () =>
    'for example --server https://batch.example:8080, and export LLM_BATCH_SERVER_TOKEN=…, one of its tokens, where it wants one',
  SUBMIT_REFUSED: ({ status, code }) => {
    if (status === 401) return 'export LLM_BATCH_SERVER_TOKEN=…, one of its tokens';
    if (status === 404) return 'check --server: it names where `llm-batch serve` listens';
    if (status === 503) return 'try again later';
    if (status === 409) return 'give this file a key of its own with --idempotency-key, or none';
    return code === 'bad_lines'
      ? 'mend them; `llm-batch check`, with the same file, says how'
      : 'mend what it names';
  },

  // Inputs and what becomes of them.
  CHANGED_ANSWERED: ({ run, simulated }) =>
    `--rerun-changed to ${simulated === true ? 'send' : 'pay for'} them again, --keep to keep the answers they have, or --name for a run of its own; \`llm-batch resume ${shellWord(String(run))}\` goes on as it was`,
  INPUT_BAD_LINES: ({ badLines, documents }) => {
    const them = badLines === 1 ? 'it' : 'them';
    const mend = `mend ${them}; \`llm-batch check\`, with the same input and flags, says how`;
    // To set every line aside would leave nothing to send.
    return documents === 0
      ? mend
      : `${mend}. Or add --skip-bad-lines to set ${them} aside in a rejects file and go on`;
  },
  INPUT_IS_PARQUET: ({ isNamed }, hint) => (isNamed === false ? 'Add --input-format parquet.' : hint),
  INPUT_IS_SQLITE: ({ isNamed }, hint) =>
    isNamed === false ? "Add --input-format sqlite --query 'SELECT …'." : hint,
  INPUT_QUERY: ({ example }, hint) =>
    example === undefined
      ? hint
      : String(example).includes("'")
        ? `Texts stand in single quotes, names in double ones: --query "${example}"`
        : `Give one SELECT statement: --query '${example}'`,
  INPUT_QUERY_MISSING: ({ query }) => `Add --query '${String(query).replaceAll("'", "'\\''")}'`,
  QUERY_UNUSED: () => 'Leave it out, or say --input-format sqlite.',
  PARAMETER_INEXACT: ({ name }) => `Write it as a string: --param '${name}="…"'.`,
  PARAMETER_REFUSED: ({ name }) =>
    name === 'model'
      ? 'Use --model.'
      : ['messages', 'prompt', 'input'].includes(String(name))
        ? 'Use --prompt and --system.'
        : 'Leave it out.',
  PARAMETER_SYNTAX: ({ name }) =>
    name === null
      ? 'Write for example --param temperature=0.2.'
      : `Quote it for the shell, for example --param '${name}={"key": "value"}'.`,
  PROMPT_FIELD_MISSING: ({ field, input, columns, delimiter }) =>
    `Say it with --prompt '…{{${field}}}…'.${
      input === undefined
        ? ''
        : ` If that is no name but a value, the table has no header: ${headerCommand(input, 'text', 1, columns, delimiter)}`
    }`,
  INPUT_WITHOUT_HEADER: ({ field, given, input, columns, delimiter }) =>
    `Name one of them in the prompt. Or, if that row is a document, put a header above it: ${headerCommand(input, field, given, columns, delimiter)}`,
  PROMPT_WITHOUT_FIELD: ({ field }, hint) => hint ?? `Put one in, for example --prompt '…{{${field}}}…'.`,
  COPY_DIRECTION: () =>
    'Name the file with --db FILE and the server with --to postgres://user@host/database.',
  COPY_INCOMPLETE: () => 'Nothing was lost in the file: call it again.',
  COPY_NAME_TAKEN: () =>
    'Copy into a schema of its own (--schema-name NAME), or delete the run on the server first.',
  COPY_OPEN_BATCHES: () =>
    'Let them end first with `llm-batch resume`; those that a provider has already can go into an empty schema: --schema-name NAME',
  COPY_TAKEN: () => 'Copy into a schema of its own: --schema-name NAME',
  RUN_CANCELLED: ({ run, freeName }) => {
    const kept = `its answers are kept: llm-batch results ${shellWord(String(run))}`;
    return freeName === null
      ? `${kept}; to send its documents after all, run the input under another --name`
      : `${kept}; to send the documents again, name another run: --name ${shellWord(String(freeName))}`;
  },
  RUN_IMPORTING: ({ input }) =>
    `run the input again, it goes on where it was: llm-batch run ${shellWord(String(input))}`,
  RUN_NAME_TAKEN: () => 'Choose another with --name, or go on with it: `llm-batch resume`.',
  RUN_OTHER_QUERY: ({ run }) =>
    `--name NEW for a run of its own, or --name ${shellWord(String(run))} to bring that run in line with the new query`,
  RUN_REMOTE: ({ run }) => `one process sends it: llm-batch resume ${shellWord(String(run))}`,
  RUN_SIMULATED_MIX: () => 'choose another --name',

  TEMPLATE_SYNTAX: ({ isImage }, hint) => (isImage === true ? 'Move it to --prompt.' : hint),

  // Files that are written.
  FORMAT_ENDING: ({ ending }) => `leave --format out, or name a file that ends in ${ending}`,
  JOIN_COLUMN: () => 'write the answers without the input: llm-batch results --format parquet',
  JOIN_FORMAT: ({ written, instead }) =>
    `name it .${written}, or write the answers alone: --format ${instead} --include-input`,
  OUTPUT_EXISTS: (facts) =>
    facts['callsMade'] === true
      ? `${writtenElsewhere(facts)}, or add --force to overwrite that file.`
      : 'choose another file with -o, move that one away, or overwrite it with --force.',
  OUTPUT_FIELDS: () => 'leave out --csv-columns: the column output holds each object as JSON',
  OUTPUT_IS_INPUT: ({ isOneOfMany }) =>
    isOneOfMany === true
      ? 'name a file in another folder with -o, or one that ends in .results.jsonl.'
      : 'name another file with -o.',
  OUTPUT_PATH: unwritten,
  OUTPUT_WRITE: unwritten,

  // The store.
  COMPARE_ENDING: () => 'name a file that ends in .html or .csv',
  COMPARE_ONE: () => 'name two or more, as `llm-batch list` shows them',
  STORE_CANNOT_OPEN: () =>
    'Check that its folder exists and that this user may write there, or name another file with --db.',
  STORE_CORRUPT: ({ path }, hint) =>
    path === undefined
      ? hint
      : `Nothing was changed. Save a copy, then try: sqlite3 ${shellWord(String(path))} .recover | sqlite3 recovered.db (or name another file with --db).`,
  STORE_FOREIGN: () =>
    'It was left untouched. Name another file with --db, or another schema with --schema-name.',
  STORE_LOCKED: (_, hint) =>
    hint ??
    'Wait for it, or stop it with Ctrl-C; `llm-batch status` shows its progress. For runs side by side, name another store with --db, or one that processes share with --store postgres://…',
  STORE_MISSING: () => 'Start with `llm-batch run <input>`, or name the store with --db.',
  STORE_NETWORK_FILE_SYSTEM: () => OWN_DISK,
  STORE_NEWER_SCHEMA: () => 'Upgrade with `npm install llm-batch@latest`, or name another file with --db.',
  STORE_ODD_FILE: () => 'Move it away, or name another file with --db.',
  STORE_READ_ONLY: (_, hint) =>
    hint ??
    'Change the permissions of the file and its folder, or use a copy in a folder of your own with --db: even reading puts a file beside the store.',
  STORE_REFUSED: ({ flag = '--store' }) =>
    `Check the user, the password (PGPASSWORD or ~/.pgpass) and the database of ${flag}; the server has to have that database already.`,
  STORE_RUN_ODD: () =>
    'Somebody has changed the store, or it is damaged: run the input again with another one, --db FILE.',
  STORE_SCHEMA_NAME: () => 'For example: --schema-name llm_batch',
  STORE_UNFIT_SERVER: ({ flag }) =>
    flag === undefined
      ? 'Name another server with --store, or a local file with --db.'
      : `Name another server with ${flag}.`,
  STORE_UNREACHABLE: ({ flag = '--store' }) =>
    `Check ${flag}, and that the server runs and lets this machine in; ${flag === '--to' ? 'then copy again' : '`llm-batch resume` goes on once it is there'}.`,
  STORE_URL_EMPTY: () => 'For example: --db llm-batch.db',
  STORE_URL_UNSUPPORTED: () =>
    'Name a file with --db, or a server with --store postgres://user@host/database.',

  // What `doctor` finds.
  BASE_URL_MEANT: ({ meant }) => `Say --base-url ${meant}`,
  BASE_URL_WRONG: () => 'Check --base-url: it is where the API is, most often ending in /v1.',
  COUNTS_DIFFER: () =>
    'Something else has written to the store. Answers can still be read: `llm-batch results`; to go on, run the input into a new store with --db.',
  DELETED_RUNS_LEFT: () => '`llm-batch prune --older-than 30d` finishes that.',
  DISK_NEARLY_FULL: () =>
    'Free some space: `llm-batch prune --older-than 30d` gives back what old runs take.',
  MODEL_UNKNOWN: ({ alike }) => (alike === '' ? 'Check --model.' : `Check --model; the server has ${alike}.`),
  SERVER_UNREACHABLE: () =>
    'Check --base-url, the connection and the proxy; a server of your own has to be started first.',
  STORE_FILE_PERMISSIONS: () =>
    'Change the permissions of the file and its folder, or use a copy in a folder of your own with --db.',
  STORE_FOLDER_MISSING: () => 'Make it, or name another place with --db.',
  STORE_FOLDER_PERMISSIONS: () => 'Change the permissions of the folder, or name another place with --db.',
  STORE_MAYBE_REMOTE: () => `If it is (sshfs, s3fs), keep${OWN_DISK.slice('Keep'.length)}`,
  STORE_NO_FILE: () => 'Name another place with --db.',
};

/** @returns undefined where nothing can be said but what is wrong */
export function wayOutOf({ code, facts, hint }: WayOut): string | undefined {
  return WAYS_OUT[code]?.(facts, hint) ?? hint;
}

/**
 * For a shell: a copy of a table with names above it; the names alone where the table is no file.
 * @param field the names that are known, so many of all columns
 */
function headerCommand(
  input: unknown,
  field: unknown,
  given: unknown,
  columns: unknown,
  delimiter: unknown,
): string {
  const others = Array.from(
    { length: Math.max(0, Number(columns) - Number(given)) },
    (_, index) => `column_${Number(given) + index + 1}`,
  );
  const names = [String(field), ...others];
  // A tab in a command is lost on its way through a terminal.
  const header =
    delimiter === '\t'
      ? `printf '%b\\n' ${shellWord(names.join('\\t'))}`
      : `echo ${shellWord(names.join(String(delimiter)))}`;
  const table = String(input);
  if (table === STANDARD_INPUT_NAME || /[*?]/.test(table)) return header;
  const [, ending = '.csv', zipped] = /(\.[a-z]+?)?(\.gz)?$/i.exec(table) ?? [];
  return `(${header}; ${zipped === undefined ? 'cat' : 'zcat'} ${shellWord(table)}) > named${ending}`;
}

function unwritten(facts: ErrorFacts, hint: string | undefined): string {
  if (facts['callsMade'] === false)
    return 'make that place ready, or choose another one for results and errors with -o FILE; no call was made.';
  if (facts['callsMade'] === true) return `${writtenElsewhere(facts)}.`;
  return `${hint ?? 'choose another place'}; the answers are safe in the store, \`llm-batch results -o FILE\` writes them again.`;
}

function writtenElsewhere({ run }: ErrorFacts): string {
  return `The answers are safe in the store: \`llm-batch results ${shellWord(String(run))} -o FILE\` writes them elsewhere`;
}
