/** Inputs that are read in a process of their own, see reader-process.ts. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { LlmBatchError, usageError } from '../core/errors.js';
import { theInput } from '../core/input-name.js';
import type { FromReader, ReaderRequest, ToReader } from './reader-process.js';
import type { InputRecord, RecordSource } from './source.js';

const MEBIBYTE = 1024 * 1024;
/** For JavaScript's values: a file of a few bytes can ask for as many of them as it likes. */
const MOST_HEAP_MEBIBYTES = 1024;
/** On top of what the file itself takes, since a group of rows is held both packed and unpacked. */
const MOST_MEMORY_BYTES = 1536 * MEBIBYTE;
/** A table that unpacks to more than both was not packed well; it was made to fill the disk. */
const MOST_TEXT = { characters: 1024 * MEBIBYTE, perByteOfFile: 1_000 } as const;

export interface ApartRequest extends Omit<ReaderRequest, 'mostMemoryBytes'> {
  /** Ends the reading at once, whatever it is doing. */
  readonly signal?: AbortSignal;
  /** Of the text of all rows together, unless a thousand times the file is more. Default: a gibibyte. */
  readonly mostCharacters?: number;
  /** On top of three times the file. Default: 1.5 GiB. */
  readonly mostMemoryBytes?: number;
}

/** @throws LlmBatchError as `openParquet` and `openSqlite` do, and INPUT_COSTLY (exit 2) for what takes too much memory */
export async function openApart(request: ApartRequest): Promise<RecordSource> {
  const {
    signal,
    mostCharacters = MOST_TEXT.characters,
    mostMemoryBytes = MOST_MEMORY_BYTES,
    ...asked
  } = request;
  const fileBytes = await stat(resolve(asked.cwd, asked.path)).then(
    ({ size }) => size,
    // The reader process says what is wrong with the file.
    () => 0,
  );
  const reader = new Reader(asked.path, signal);
  try {
    const reply = await reader.ask({ ...asked, mostMemoryBytes: mostMemoryBytes + 3 * fileBytes });
    if (!('opened' in reply)) throw new TypeError('the reader answered something else');
    let bytesRead = 0;
    return {
      ...reply.opened,
      bytesRead: () => bytesRead,
      async *records(options) {
        const most = Math.max(mostCharacters, fileBytes * MOST_TEXT.perByteOfFile);
        let characters = 0;
        for (;;) {
          const next = await reader.ask({ next: options });
          if (!('page' in next) || next.page === null) return;
          bytesRead = next.bytesRead;
          characters += charactersOf(next.page);
          if (characters > most) throw unpacksTooMuch(asked.path, fileBytes);
          yield next.page;
        }
      },
      close: () => reader.end(),
    };
  } catch (error) {
    await reader.end();
    throw error;
  }
}

function charactersOf(page: readonly InputRecord[]): number {
  return page.reduce((sum, { text }) => sum + (text?.length ?? 0), 0);
}

function unpacksTooMuch(name: string, fileBytes: number): LlmBatchError {
  return usageError(
    'INPUT_UNPACKS',
    `${theInput(name)} has ${fileBytes} bytes and unpacks to more than a thousand times as much.`,
    'Unpack it with another program first, where that is meant.',
  );
}

class Reader {
  readonly #name: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  constructor(name: string, signal: AbortSignal | undefined) {
    this.#name = name;
    // Tests run the TypeScript source, but a forked process needs the built file; package.json says where that is.
    this.#child = fork(createRequire(import.meta.url).resolve('#reader-process'), [], {
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      execArgv: [`--max-old-space-size=${MOST_HEAP_MEBIBYTES}`],
      // Nothing from the user's environment, least of all a key.
      env: {},
      // Ctrl-C reaches every process of the terminal's group, but only the parent decides what it means.
      detached: true,
    });
    this.#ended = once(this.#child, 'exit');
    const end = (): void => void this.#child.kill('SIGKILL');
    if (signal?.aborted) end();
    signal?.addEventListener('abort', end, { once: true });
    this.#child.once('exit', () => signal?.removeEventListener('abort', end));
  }

  async ask(message: ToReader): Promise<FromReader> {
    const listening = new AbortController();
    try {
      const answered = once(this.#child, 'message', listening).then(([reply]) => reply as FromReader);
      const ended = this.#ended.then(() => null);
      this.#child.send(message, () => undefined);
      const reply = await Promise.race([answered, ended]);
      if (reply === null) throw costly(this.#name);
      if ('refused' in reply) {
        const { message: sentence, code, exitCode, hint, facts } = reply.refused;
        throw new LlmBatchError(sentence, { code, exitCode, facts, ...(hint === undefined ? {} : { hint }) });
      }
      if ('failed' in reply) throw new Error(reply.failed);
      return reply;
    } finally {
      listening.abort();
    }
  }

  async end(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }
}

function costly(name: string): LlmBatchError {
  return usageError(
    'INPUT_COSTLY',
    `${theInput(name)} could not be read: it takes more memory than a file of its size should.`,
    'It is damaged, or was made to do harm; fetch or write it again.',
  );
}
