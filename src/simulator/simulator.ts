/**
 * An OpenAI-compatible server on this machine, to rehearse against and to judge the client with. It imports
 * nothing of limiter or provider: its window and its books are its own, so that one mistake cannot hide in
 * both. router.ts takes requests in, judge.ts decides, books.ts counts, reply.ts answers.
 *
 *   POST /v1/chat/completions          GET /v1/models[/ID]
 *   /v1/files[/ID[/content]]           /v1/batches[/ID[/cancel]]
 *   /v1/responses/ID[/cancel]
 *   GET  /simulator/books              what arrived, as JSON
 *   POST /simulator/reconfigure        options as JSON, laid over those in force
 *   POST /simulator/heal               ends every fault
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock, Random } from '../core/clock.js';
import { usageError } from '../core/errors.js';
import { Books, type SimulatorBooks } from './books.js';
import { CallLog } from './call-log.js';
import { Judge } from './judge.js';
import { DEFAULT_SEED, resolveOptions, type SimulatorChanges, type SimulatorOptions } from './options.js';
import { Router } from './router.js';

export interface Simulator {
  /** Base URL for a client, `http://127.0.0.1:PORT/v1`. */
  readonly url: string;
  readonly port: number;
  readonly seed: number;
  books(): SimulatorBooks;
  /** Ends every fault: outage, errors, empty accounts, revoked keys, and what documents ask for. */
  heal(): void;
  /** Lays options over those in force. @throws LlmBatchError `SIMULATOR_OPTION` */
  reconfigure(changes: SimulatorChanges): void;
  /** Cuts every connection, open calls included; the port is free afterwards. */
  close(): Promise<void>;
}

export interface SimulatorDependencies {
  readonly clock: Clock;
  /** Draws the seed when the options give none. */
  readonly random?: Random;
}

const HOST = '127.0.0.1';
/** Longer than clients keep an idle connection, so that it is they who close it and no call meets a dying one. */
const KEEP_ALIVE_MS = 120_000;

/**
 * Starts a simulator on loopback.
 * @throws LlmBatchError `SIMULATOR_OPTION`, `SIMULATOR_LOG` or `SIMULATOR_PORT`
 */
export async function startSimulator(
  options: SimulatorOptions,
  { clock, random }: SimulatorDependencies,
): Promise<Simulator> {
  const seed = options.seed ?? (random ? Math.floor(random() * 2 ** 31) : DEFAULT_SEED);
  const { port, logFile } = resolveOptions(options);
  const books = new Books(clock.monotonicMs());
  const log = logFile === null ? null : await CallLog.open(logFile, (message) => books.noteDefect(message));
  const judge = new Judge({ ...options, seed }, { books, log, clock });
  const router = new Router(judge, books, clock);
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) =>
    router.handle(request, response),
  );
  // A document may take longer to come than Node's default allows; the caller's deadline is the caller's.
  server.requestTimeout = 0;
  await once(server.listen(port, HOST), 'listening').catch(
    async ({ code, message }: NodeJS.ErrnoException) => {
      await log?.close();
      throw usageError(
        'SIMULATOR_PORT',
        `The simulator cannot listen on ${HOST}:${port}: ${code === 'EADDRINUSE' ? 'another program does' : message}.`,
        'Choose another port, or 0 for any that is free.',
      );
    },
  );
  server.on('error', (error) => books.noteDefect(`The server failed: ${error.message}`));
  const { port: boundPort } = server.address() as AddressInfo;
  let closing: Promise<void> | null = null;
  return {
    url: `http://${HOST}:${boundPort}/v1`,
    port: boundPort,
    seed,
    books: () => judge.snapshot(),
    heal: () => judge.heal(),
    reconfigure: (changes) => judge.reconfigure(changes),
    close() {
      closing ??= stop(server).then(async () => {
        await router.close();
        await log?.close();
      });
      return closing;
    },
  };
}

function stop(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
