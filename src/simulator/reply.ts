/** What a call gets on the wire, as data, and the hand that puts it there. */
import type { ServerResponse } from 'node:http';
import type { Clock } from '../core/clock.js';
import type { Headers } from './dialect.js';

export type Reply =
  | {
      readonly type: 'send';
      readonly status: number;
      readonly contentType: string;
      readonly body: string;
      readonly headers?: Headers;
    }
  /** Status 200 with a content-length of the whole body, half of it, then the connection closes. */
  | { readonly type: 'cut'; readonly body: string }
  /** Status 200 at once, a blank every `everyMs`; after `thenAfterMs` the body, or never. */
  | {
      readonly type: 'drip';
      readonly everyMs: number;
      readonly thenAfterMs: number;
      readonly body: string;
    }
  | { readonly type: 'hang' }
  | { readonly type: 'reset' };

export const JSON_TYPE = 'application/json; charset=utf-8';
const HTML_TYPE = 'text/html; charset=utf-8';

export function sendJson(status: number, body: string, headers: Headers = {}): Reply {
  return { type: 'send', status, contentType: JSON_TYPE, body, headers };
}

export function sendHtml(status: number, title: string): Reply {
  const body = `<!DOCTYPE html>\n<html><head><title>${title}</title></head>\n<body><center><h1>${title}</h1></center><hr></body></html>\n`;
  return { type: 'send', status, contentType: HTML_TYPE, body };
}

/** True when it was a proxy that spoke, or nobody: the server's own headers are missing then. */
export function isFromProxy(reply: Reply): boolean {
  return (
    reply.type === 'hang' ||
    reply.type === 'reset' ||
    (reply.type === 'send' && reply.contentType === HTML_TYPE)
  );
}

/** The status line a reply has; null for one that never gets as far. */
export function statusOf(reply: Reply): number | null {
  if (reply.type === 'send') return reply.status;
  return reply.type === 'hang' || reply.type === 'reset' ? null : 200;
}

/**
 * Delivers a reply. Every timer it sets ends with the connection.
 * @param delayMs before anything is sent; dripping starts at once
 */
export function deliver(
  reply: Reply,
  headers: Headers,
  delayMs: number,
  response: ServerResponse,
  clock: Clock,
): void {
  if (reply.type === 'hang') return;
  if (reply.type === 'drip') {
    drip(reply, headers, response, clock);
    return;
  }
  if (delayMs <= 0) {
    sendNow(reply, headers, response);
    return;
  }
  const cancel = clock.after(delayMs, () => sendNow(reply, headers, response));
  response.once('close', cancel);
}

function sendNow(
  reply: Exclude<Reply, { type: 'hang' | 'drip' }>,
  headers: Headers,
  response: ServerResponse,
): void {
  if (response.destroyed) return;
  switch (reply.type) {
    case 'send':
      response.writeHead(reply.status, {
        'content-type': reply.contentType,
        ...reply.headers,
        ...headers,
        'content-length': Buffer.byteLength(reply.body),
      });
      response.end(reply.body);
      return;
    case 'reset':
      response.socket?.resetAndDestroy();
      return;
    case 'cut': {
      const whole = Buffer.from(reply.body);
      response.writeHead(200, { 'content-type': JSON_TYPE, ...headers, 'content-length': whole.length });
      // Closed only once the half is with the kernel; sooner, the client might not even see the headers.
      response.write(whole.subarray(0, Math.floor(whole.length / 2)), () => response.socket?.destroy());
      return;
    }
  }
}

function drip(
  reply: Extract<Reply, { type: 'drip' }>,
  headers: Headers,
  response: ServerResponse,
  clock: Clock,
): void {
  response.writeHead(200, { 'content-type': JSON_TYPE, ...headers });
  const endMs = clock.monotonicMs() + reply.thenAfterMs;
  let cancel = (): void => {};
  const next = (): void => {
    const leftMs = endMs - clock.monotonicMs();
    if (leftMs <= 0) {
      response.end(reply.body);
      return;
    }
    // A newline: blank to every JSON parser, wherever it stands between tokens.
    response.write('\n');
    cancel = clock.after(Math.min(reply.everyMs, leftMs), next);
  };
  response.once('close', () => cancel());
  next();
}
