/**
 * Connections through a proxy: CONNECT (RFC 9110, section 9.3.6) by Node's own client, SOCKS by the `socks` package.
 * Undici's ProxyAgent was tried: it tunnels plain http as well, knows no CIDR, takes a proxy that hangs up for a passing
 * matter and connects anew without end, and calls its SOCKS experimental at each start.
 */
import { lookup } from 'node:dns/promises';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { buildConnector } from 'undici';
import type { ProviderFailure } from '../../core/failure.js';
import type { ProxyRoute } from './proxy.js';

type Connector = buildConnector.connector;
type Callback = buildConnector.Callback;
interface Target {
  readonly hostname: string;
  readonly port: string;
  readonly protocol: string;
}

/** Of the operating system's reasons not to connect, those that are this machine's own (POSIX, connect and socket). */
export const SHORT_OF: Readonly<Record<string, ProviderFailure['shortOf']>> = {
  EMFILE: 'connections',
  ENFILE: 'connections',
  ENOMEM: 'connections',
  ENOBUFS: 'connections',
  EADDRNOTAVAIL: 'connections',
  ENETDOWN: 'network',
  ENETUNREACH: 'network',
  EHOSTUNREACH: 'network',
};

/** An error by which a failure is told as the proxy's: `code` is one of connection-failure.ts. */
export function proxyError(code: string, { name }: ProxyRoute, detail = ''): Error {
  return Object.assign(new Error(detail === '' ? name : `${name}: ${detail}`), { code });
}

/** Of a status with which a proxy answers instead of opening a way. */
export function proxyRefusalCode(status: number): string {
  // tinyproxy says 401 where the password is wrong.
  if (status === 407 || status === 401) return 'PROXY_AUTH';
  return status >= 500 ? 'PROXY_LEADS_NOWHERE' : 'PROXY_REFUSED';
}

/** `Proxy-Authorization` of user and password, as Basic (RFC 7617). */
export function proxyAuthorization({ url }: ProxyRoute): Record<string, string> {
  const { username, password } = credentialsOf(url);
  if (username === '' && password === '') return {};
  return { 'proxy-authorization': `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
}

/** To the proxy itself, for requests that name their server in full. */
export function connectorTo(proxy: ProxyRoute, options: buildConnector.BuildOptions): Connector {
  const connect = buildConnector(options);
  return (target, callback) =>
    connect(target, ((error: Error | null, socket: Socket | null) =>
      error === null ? callback(null, socket as Socket) : callback(blamed(error, proxy), null)) as Callback);
}

/** To the server, through the proxy. */
export function connectorThrough(
  proxy: ProxyRoute,
  options: buildConnector.BuildOptions,
  timeoutMs: number,
): Connector {
  const secure = buildConnector(options);
  const open = proxy.url.protocol.startsWith('socks') ? openSocks : openTunnel;
  return (target, callback) => {
    const place = { ...target, port: target.port || (target.protocol === 'https:' ? '443' : '80') };
    open(proxy, place, timeoutMs).then(
      (socket) => {
        if (target.protocol === 'https:') secure({ ...target, httpSocket: socket }, callback);
        else callback(null, socket);
      },
      (error: Error) => callback(error, null),
    );
  };
}

function openTunnel(proxy: ProxyRoute, target: Target, timeoutMs: number): Promise<Socket> {
  const { url } = proxy;
  const authority = `${target.hostname}:${target.port}`;
  const ask = url.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const request = ask({
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: url.port || (url.protocol === 'https:' ? 443 : 80),
      method: 'CONNECT',
      path: authority,
      headers: { host: authority, ...proxyAuthorization(proxy) },
      agent: false,
      timeout: timeoutMs,
    });
    request.once('connect', ({ statusCode = 0, statusMessage = '' }, socket) => {
      if (statusCode >= 200 && statusCode < 300) {
        socket.setTimeout(0);
        resolve(socket as Socket);
        return;
      }
      socket.on('error', () => undefined).destroy();
      reject(proxyError(proxyRefusalCode(statusCode), proxy, `${statusCode} ${statusMessage}`.trim()));
    });
    request.once('timeout', () =>
      request.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })),
    );
    request.once('error', (error: Error & { code?: string }) => reject(blamed(error, proxy)));
    request.end();
  });
}

async function openSocks(proxy: ProxyRoute, target: Target, timeoutMs: number): Promise<Socket> {
  const { SocksClient } = await import('socks');
  const { url } = proxy;
  const { username, password } = credentialsOf(url);
  const name = target.hostname.replace(/^\[|\]$/g, '');
  // As in curl: with the `h` the proxy looks the name up, without it this machine does.
  const host = url.protocol === 'socks5h:' ? name : (await lookup(name)).address;
  try {
    const { socket } = await SocksClient.createConnection({
      proxy: {
        host: url.hostname.replace(/^\[|\]$/g, ''),
        port: Number(url.port || 1080),
        type: 5,
        ...((username !== '' || password !== '') && { userId: username, password }),
      },
      command: 'connect',
      destination: { host, port: Number(target.port) },
      timeout: timeoutMs,
    });
    return socket;
  } catch (error) {
    const { message } = error as Error;
    if (/authentication/i.test(message)) throw proxyError('PROXY_AUTH', proxy, message);
    if (/NotAllowed/.test(message)) throw proxyError('PROXY_REFUSED', proxy, message);
    if (/rejected connection/.test(message)) throw proxyError('PROXY_LEADS_NOWHERE', proxy, message);
    throw blamed(error as Error, proxy);
  }
}

function blamed(error: Error & { code?: unknown }, proxy: ProxyRoute): Error {
  const { code } = error;
  // What this machine itself is short of: whoever is to be reached has no part in it. No route may be the proxy's absence.
  if (typeof code === 'string' && Object.hasOwn(SHORT_OF, code) && code !== 'EHOSTUNREACH') return error;
  const isClosed = code === 'ECONNRESET' || code === 'UND_ERR_SOCKET';
  return proxyError(isClosed ? 'PROXY_CLOSED' : 'PROXY_UNREACHABLE', proxy, error.message || String(code));
}

function credentialsOf({ username, password }: URL): { username: string; password: string } {
  return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
}
