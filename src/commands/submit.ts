/** `submit`: hands the documents of a file to a service, and waits for their results if asked to. */
import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Readable } from 'node:stream';
import type { Command } from 'commander';
import { type ClientOptions, LlmBatchClient, ServiceProblem } from '../client/service-client.js';
import { EXIT_CODES, type ExitCode, usageError } from '../core/errors.js';
import { printable } from '../core/foreign-text.js';
import { unreadable } from '../input/bytes.js';
import { writeNotice } from '../ui/notice.js';
import type { Action, Verb } from './action.js';
import { isThereToBeAsked } from './confirm.js';
import { addSettingFlags, readSettings } from './setting-flags.js';

const EXAMPLES = `
Examples:
  llm-batch submit reviews.jsonl --prompt 'Classify the sentiment: {{text}}'
  llm-batch submit requests.jsonl --wait > results.jsonl
  cat requests.jsonl | llm-batch submit - --server http://batch.internal:8080 --wait`;

export function registerSubmit(program: Command, action: Action): void {
  const command = program
    .command('submit')
    .argument('[file]', 'JSONL, a document or a request a line; -, or none: standard input')
    .description('hand a file of documents to a service (`llm-batch serve`), as a run of its own')
    .addHelpText('after', EXAMPLES)
    .option('--wait', 'wait until all are done, and print their results as JSONL')
    .option(
      '--idempotency-key <key>',
      'the same key and file again are the same run, and nothing is done twice',
    )
    .option('-p, --prompt <template>', 'user message; {{field}} is filled from each document')
    .option('-m, --model <name>', 'model for documents that name none');
  addSettingFlags(command, ['client', 'display']).action(action(submit));
}

interface SubmitCommandOptions {
  readonly wait?: boolean;
  readonly idempotencyKey?: string;
  readonly prompt?: string;
  readonly model?: string;
}

async function submit(
  verb: Verb,
  named: string | undefined,
  options: SubmitCommandOptions,
): Promise<ExitCode> {
  const { context } = verb;
  const { settings } = await readSettings(verb);
  if (named === undefined && isThereToBeAsked(context)) {
    throw usageError(
      'INPUT_UNNAMED',
      'There is nothing to hand in.',
      'Name a file, or pipe the documents in.',
    );
  }
  const file = named ?? '-';
  const { stdin, stdout, stderr, clock, random, takeSecret, workingFolder, interrupts } = context;
  let isUnanswered = false;
  const client = clientOf({
    ...{ server: settings.server, token: takeSecret('LLM_BATCH_SERVER_TOKEN') ?? null, clock, random },
    onUnanswered(error) {
      if (!isUnanswered && !settings.quiet) writeNotice(stderr, waitingFor(error, settings.server));
      isUnanswered = true;
    },
  });
  const ending = new AbortController();
  const stopListening = interrupts.subscribe(() => ending.abort());
  const { signal } = ending;
  try {
    const lines = file === '-' ? stdin : await openFile(file, resolve(workingFolder, file));
    const { idempotencyKey, prompt, model } = options;
    const { id } = await client.submitRun(lines, {
      signal,
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      ...(prompt === undefined ? {} : { prompt }),
      ...(model === undefined ? {} : { model }),
    });
    if (options.wait !== true) {
      stdout.write(`${JSON.stringify({ id })}\n`);
      return EXIT_CODES.completed;
    }
    if (!settings.quiet) stderr.write(`Handed in as ${printable(id)}; waiting for its results.\n`);
    const { documents, status } = await client.pollRun(id, signal);
    for await (const chunk of client.results(id, signal)) stdout.write(chunk);
    if (status === 'cancelled') return EXIT_CODES.halted;
    return documents.failed > 0 ? EXIT_CODES.someFailed : EXIT_CODES.completed;
  } catch (error) {
    if (signal.aborted) return EXIT_CODES.interrupted;
    throw asOwnError(error, settings.server);
  } finally {
    stopListening();
  }
}

/** Before the service is asked for anything, so that what is wrong with the file is told as such. */
async function openFile(file: string, path: string): Promise<Readable> {
  const handle = await open(path).catch((error: unknown) => {
    throw unreadable(error, file, path);
  });
  if (!(await handle.stat()).isDirectory()) return handle.createReadStream();
  await handle.close();
  throw usageError('INPUT_IS_FOLDER', `The input ${file} is a folder.`, 'Name a file inside it.');
}

/** @throws LlmBatchError SERVER_ADDRESS (exit 2) */
function clientOf(options: ClientOptions): LlmBatchClient {
  try {
    return new LlmBatchClient(options);
  } catch (error) {
    const { message } = error as Error;
    throw usageError('SERVER_ADDRESS', `The service cannot be asked: its ${message}.`);
  }
}

function waitingFor(error: unknown, server: string): string {
  const why =
    error instanceof ServiceProblem ? `answers ${error.status}` : `does not answer (${whyNot(error)})`;
  return printable(`${server} ${why}; it is asked again until it has the results. Ctrl-C ends the wait.`);
}

/** Places that are named; more are with the file itself. */
const MOST_PLACES = 3;

function asOwnError(error: unknown, server: string): unknown {
  if (error instanceof ServiceProblem) {
    const { status, code, message, errors } = error;
    // A single place is mostly in the sentence already.
    const named = errors.filter(({ message: words }) => !message.includes(words));
    const places = named.slice(0, MOST_PLACES).map((place) => `${place.field}: ${place.message}`);
    if (named.length > MOST_PLACES) places.push('…');
    const inPlaces = places.length === 0 ? '' : ` (${places.join('; ')})`;
    const problem = `${server} answered ${status}: ${message.replace(/\.$/, '')}${inPlaces}.`;
    return usageError('SUBMIT_REFUSED', problem, { status, code });
  }
  if (!(error instanceof TypeError)) return error;
  return usageError('SERVICE_UNREACHABLE', `No service answers at ${server}: ${whyNot(error)}.`);
}

function whyNot(error: unknown): string {
  const { code, message } = ((error as Error).cause ?? error) as NodeJS.ErrnoException;
  return code ?? message;
}
