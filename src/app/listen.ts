/** Where the program listens, and to whom. */
import type { AddressInfo } from 'node:net';
import { EXIT_CODES, LlmBatchError, usageError } from '../core/errors.js';
import { isLoopback } from '../core/loopback.js';
import type { createHttpServer } from '../server/http-server.js';

interface Place {
  readonly host: string;
  readonly port: number;
}

/** @throws LlmBatchError SERVE_TOKENS (exit 2) where others reach it and nobody has to show a token */
export function refuseOpenDoor(host: string, tokens: readonly string[]): void {
  const name = host.includes(':') ? `[${host}]` : host;
  if (tokens.length > 0 || (isLoopback(name) && name !== '0.0.0.0')) return;
  throw usageError(
    'SERVE_TOKENS',
    `Whoever reaches ${host} could have calls made and paid for: LLM_BATCH_SERVE_TOKENS is not set.`,
  );
}

/** @returns the address @throws LlmBatchError SERVE_LISTEN (exit 2) */
export async function listen(
  app: ReturnType<typeof createHttpServer>,
  { host, port }: Place,
): Promise<string> {
  try {
    await app.listen({ host, port });
    return urlOf(app.server.address() as AddressInfo);
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    throw new LlmBatchError(`The service cannot listen on ${host}, port ${port}: ${code ?? message}.`, {
      code: 'SERVE_LISTEN',
      exitCode: EXIT_CODES.usage,
      cause,
    });
  }
}

function urlOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
