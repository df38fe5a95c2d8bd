/** Who may use the service: whoever has one of its tokens. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isLoopback } from '../core/loopback.js';
import { Problem } from './problem.js';

export type CheckAccess = (headers: IncomingHttpHeaders) => void;

/**
 * Without tokens the service listens on this machine alone; there a page in a browser could reach it by a name of its own
 * that leads to 127.0.0.1, so that it answers to this machine's names alone, and to its own page: a form of another one
 * can post what needs no body, such as a retry, to 127.0.0.1 itself.
 * @returns throws Problem 401 or 403
 */
export function createAccessCheck(tokens: readonly string[]): CheckAccess {
  if (tokens.length === 0) {
    return ({ host = '', origin, 'sec-fetch-site': site }) => {
      const name = URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : '';
      if (!isLoopback(name)) {
        throw new Problem(403, 'Without tokens this service answers to localhost alone.', { code: 'host' });
      }
      // A browser says whose page asks for what changes anything; behind a proxy, ours has another name than `host`.
      if (origin === undefined || origin === `http://${host}` || site === 'same-origin') return;
      throw new Problem(403, 'Without tokens this service takes nothing from pages of others.', {
        code: 'origin',
      });
    };
  }
  const known = tokens.map(hash);
  return ({ authorization = '' }) => {
    const given = /^bearer +(\S+) *$/i.exec(authorization)?.[1];
    // Each is compared, so that the time tells nothing of which, or how much of it, is right.
    let matches = 0;
    const digest = hash(given ?? '');
    for (const each of known) matches += timingSafeEqual(each, digest) ? 1 : 0;
    if (given !== undefined && matches > 0) return;
    throw new Problem(401, 'Give one of the tokens of this service: Authorization: Bearer TOKEN.', {
      code: 'token',
    });
  };
}

function hash(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** @param text tokens with commas between */
export function readTokens(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .map((token) => token.trim())
    .filter((token) => token !== '');
}
