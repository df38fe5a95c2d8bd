/**
 * One PostgreSQL for all tests of a session, started by the first that asks. Vitest's own process has it, so that it
 * outlives the test files and ends with the session, also where that is killed.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type PostgresServer, startPostgres } from './postgres-server.js';

/** Where test files ask for the server; inherited by them. */
const SOCKET = 'TEST_POSTGRES_SOCKET';

/** Call in Vitest's own process, before the first test file. @returns what ends it */
export async function offerPostgres(): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), 'llm-batch-offer-'));
  let server: Promise<PostgresServer> | null = null;
  const given = process.env['LLM_BATCH_TEST_POSTGRES_URL'];
  const offer = createServer((socket) => {
    socket.on('error', () => undefined);
    if (given !== undefined) {
      socket.end(given);
      return;
    }
    server ??= startPostgres();
    server.then(
      ({ url }) => socket.end(url),
      (error: unknown) => socket.end(`failed: ${error}`),
    );
  });
  process.env[SOCKET] = join(folder, 'socket');
  offer.listen(process.env[SOCKET]);
  await once(offer, 'listening');
  return async () => {
    offer.close();
    await (server as Promise<PostgresServer> | null)?.then(
      (started) => started.remove(),
      () => undefined,
    );
    rmSync(folder, { recursive: true, force: true });
  };
}

/** The URL of the session's server. A test uses schemas of its own in it. */
export async function postgresUrl(): Promise<string> {
  const socket = connect(process.env[SOCKET] ?? '');
  let answer = '';
  for await (const chunk of socket) answer += String(chunk);
  if (!answer.startsWith('postgres')) throw new Error(`There is no PostgreSQL for tests: ${answer}`);
  return answer;
}
