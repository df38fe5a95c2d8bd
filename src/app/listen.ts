/** Where the program listens, and to whom. */
import type { AddressInfo } from 'node:net';
import { EXIT_CODES, LlmBatchError, usageError } from '../core/errors.js';
import { isLoopback } from '../core/loopback.js';
import type { createHttpServer } from '../server/http-server.js';

export interface Place {
  readonly host: string;
  readonly port: number;
  /** A worker's figures are there, not the service. */
  readonly isOfFigures?: boolean;
}

/** @throws LlmBatchError SERVE_TOKENS (exit 2) where others reach it and nobody has to show a token */
export function refuseOpenDoor({ host, isOfFigures = false }: Place, tokens: readonly string[]): void {
  const name = host.includes(':') ? `[${host}]` : host;
  if (tokens.length > 0 || (isLoopback(name) && name !== '0.0.0.0')) return;
  throw usageError(
    'SERVE_TOKENS',
    `Whoever reaches ${host} would be let in: LLM_BATCH_SERVE_TOKENS is not set.`,
    { isOfFigures },
  );
}

/** @returns the address @throws LlmBatchError SERVE_LISTEN (exit 2) */
export async function listen(
  app: ReturnType<typeof createHttpServer>,
  { host, port, isOfFigures = false }: Place,
): Promise<string> {
  try {
    await app.listen({ host, port });
    const { address, family, port: taken } = app.server.address() as AddressInfo;
    return `http://${family === 'IPv6' ? `[${address}]` : address}:${taken}`;
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const who = isOfFigures ? 'worker' : 'service';
    throw new LlmBatchError(`The ${who} cannot listen on ${host}, port ${port}: ${code ?? message}.`, {
      ...{ code: 'SERVE_LISTEN', exitCode: EXIT_CODES.usage, facts: { isOfFigures }, cause },
    });
  }
}
