/** One try to hand a message to its receiver. */
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { Clock } from '../../core/clock.js';

export interface PostOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly lookup: LookupFunction;
  /** For all of it: the name, the connection and the answer. */
  readonly deadlineMs: number;
  readonly clock: Clock;
}

export interface PostReply {
  /** Null where none came. */
  readonly httpStatus: number | null;
  readonly problem: string | null;
}

/**
 * Never follows a redirect, never goes through a proxy (which would look the name up itself), and reads nothing of an
 * answer but its status: what an inside server would say must not come back to whoever named it.
 */
export function post(address: string, options: PostOptions): Promise<PostReply> {
  const { headers, body, lookup, deadlineMs, clock } = options;
  return new Promise((resolve) => {
    const request = (address.startsWith('https:') ? requestHttps : requestHttp)(address, {
      method: 'POST',
      agent: false,
      lookup,
      headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
    });
    const cancel = clock.after(deadlineMs, () => {
      request.destroy(new Error(`no answer within ${deadlineMs / 1_000} s`));
    });
    const end = (reply: PostReply): void => {
      cancel();
      resolve(reply);
      request.destroy();
    };
    request.on('response', ({ statusCode = 0 }) => {
      const isTaken = statusCode >= 200 && statusCode < 300;
      end({ httpStatus: statusCode, problem: isTaken ? null : `answered ${statusCode}` });
    });
    request.on('error', ({ message, code }: NodeJS.ErrnoException) =>
      end({ httpStatus: null, problem: code === undefined ? message : `no connection: ${code}` }),
    );
    request.end(body);
  });
}
