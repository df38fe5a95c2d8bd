/** The environment's proxies: which one is taken, what it is asked, and who is blamed. */
import { createServer, request as httpRequest } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Server,
  type Socket,
} from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { proxyFor } from '../../../src/provider/openai/proxy.js';
import { selfSignedCertificate } from '../../support/certificate.js';
import { answerJson, completionText, openProvider, send, startServer } from './loopback.js';

const HOST = 'llm.example.test';

async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

function joined(socket: Socket, port: number, onReady: () => void): void {
  const upstream = connect(port, '127.0.0.1', () => {
    onReady();
    upstream.pipe(socket).pipe(upstream);
  });
  upstream.on('error', () => socket.destroy());
  socket.on('close', () => upstream.destroy());
}

interface HttpProxy {
  /** The request lines that it got, with the credentials. */
  readonly asked: string[];
  readonly port: number;
}

/** Leads everything to `port`, or answers with `refuse`, which is a whole response; an empty one hangs up. */
async function startHttpProxy(port: number, refuse?: string): Promise<HttpProxy> {
  const asked: string[] = [];
  const note = ({
    method,
    url,
    headers,
  }: {
    method?: string | undefined;
    url?: string | undefined;
    headers: NodeJS.Dict<string | string[]>;
  }) => asked.push(`${method} ${url} ${headers['proxy-authorization'] ?? '-'}`);
  const proxy = createServer((request, response) => {
    note(request);
    if (refuse !== undefined) {
      request.socket.end(refuse);
      return;
    }
    const { pathname } = new URL(request.url ?? '');
    const { 'proxy-authorization': _, ...headers } = request.headers;
    const upstream = httpRequest({
      port,
      host: '127.0.0.1',
      method: request.method,
      path: pathname,
      headers,
    });
    upstream.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    request.pipe(upstream);
  });
  proxy.on('connect', (request, socket: Socket) => {
    note(request);
    if (refuse !== undefined) socket.end(refuse);
    else joined(socket, port, () => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
  });
  return { asked, port: await listen(proxy) };
}

/** RFC 1928 and 1929, as far as a client of names needs it. */
async function startSocksProxy(port: number, reply = 0, accepts = true): Promise<HttpProxy> {
  const asked: string[] = [];
  let credentials = '-';
  const proxy = createTcpServer((socket) => {
    socket.once('data', (greeting) => {
      const asksForPassword = greeting.subarray(2).includes(2);
      socket.write(Buffer.from([5, asksForPassword ? 2 : 0]));
      const connected = (message: Buffer): void => {
        const length = message[4] ?? 0;
        asked.push(`${message.subarray(5, 5 + length)}:${message.readUInt16BE(5 + length)} ${credentials}`);
        const answer = Buffer.from([5, reply, 0, 1, 127, 0, 0, 1, 0, 80]);
        if (reply === 0) joined(socket, port, () => socket.write(answer));
        else socket.end(answer);
      };
      if (!asksForPassword) {
        socket.once('data', connected);
        return;
      }
      socket.once('data', (message) => {
        const user = message.subarray(2, 2 + (message[1] ?? 0));
        credentials = `${user}:${message.subarray(3 + user.length)}`;
        socket.write(Buffer.from([1, accepts ? 0 : 1]));
        socket.once('data', connected);
      });
    });
  });
  return { asked, port: await listen(proxy) };
}

const BASIC = `Basic ${Buffer.from('me:hunter2hunter2').toString('base64')}`;

describe('a proxy of the environment', () => {
  it('is asked for plain http by the whole address, over no more connections than allowed', async () => {
    const server = await startServer((_request, response) => answerJson(response, completionText()));
    const proxy = await startHttpProxy(server.port);
    const environment = { HTTP_PROXY: `me:hunter2hunter2@127.0.0.1:${proxy.port}` };
    const provider = openProvider(`http://${HOST}/v1`, { maxConnections: 3, environment });
    const replies = await Promise.all(Array.from({ length: 12 }, () => send(provider)));
    expect(replies.every((reply) => reply.ok)).toBe(true);
    expect(new Set(proxy.asked)).toEqual(new Set([`POST http://${HOST}/v1/chat/completions ${BASIC}`]));
    expect(server.requests[0]?.headers.host).toBe(HOST);
    expect(JSON.stringify(server.requests[0]?.headers)).not.toContain('proxy-auth');
    expect(server.peakSockets()).toBeLessThanOrEqual(3);
  });

  it.each(['http', 'socks5h'])('leads to https by a tunnel: %s', async (kind) => {
    const { NODE_TLS_REJECT_UNAUTHORIZED: before } = process.env;
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    onTestFinished(() => {
      if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
      else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before;
    });
    const server = createSecureServer(selfSignedCertificate(HOST), (_request, response) =>
      answerJson(response, completionText()),
    );
    const port = await listen(server);
    const proxy = kind === 'http' ? await startHttpProxy(port) : await startSocksProxy(port);
    const environment = { ALL_PROXY: `${kind}://me:hunter2hunter2@127.0.0.1:${proxy.port}` };
    const reply = await send(openProvider(`https://${HOST}/v1`, { environment }));
    expect(reply).toMatchObject({ ok: true });
    expect(proxy.asked).toEqual([
      kind === 'http' ? `CONNECT ${HOST}:443 ${BASIC}` : `${HOST}:443 me:hunter2hunter2`,
    ]);
  });

  it('of the kind SOCKS leads to plain http too, and looks the name up itself', async () => {
    const server = await startServer((_request, response) => answerJson(response, completionText()));
    const proxy = await startSocksProxy(server.port);
    const environment = { all_proxy: `socks5h://127.0.0.1:${proxy.port}` };
    expect(await send(openProvider(`http://${HOST}:8000/v1`, { environment }))).toMatchObject({ ok: true });
    expect(proxy.asked).toEqual([`${HOST}:8000 -`]);
  });

  const refusal = (status: string, headers = '') =>
    `HTTP/1.1 ${status}\r\n${headers}content-length: 0\r\n\r\n`;
  it.each([
    ['http', refusal('407 Who are you'), 'PROXY_AUTH', 'auth', /wants a user name and a password/],
    ['https', refusal('407 Who are you'), 'PROXY_AUTH', 'auth', /wants a user name and a password/],
    [
      'http',
      refusal('403 No', 'x-squid-error: ERR_ACCESS_DENIED 0\r\n'),
      'PROXY_REFUSED',
      'auth',
      /does not allow/,
    ],
    [
      'http',
      refusal('403 Filtered', 'server: tinyproxy/1.11\r\n'),
      'PROXY_REFUSED',
      'auth',
      /does not allow/,
    ],
    ['https', refusal('401 Unauthorized'), 'PROXY_AUTH', 'auth', /wants a user name and a password/],
    [
      'http',
      refusal('401 Unauthorized', 'server: tinyproxy/1.11\r\n'),
      'PROXY_AUTH',
      'auth',
      /wants a user name and a password/,
    ],
    ['https', refusal('403 No'), 'PROXY_REFUSED', 'auth', /does not allow/],
    ['https', refusal('502 Bad Gateway'), 'PROXY_LEADS_NOWHERE', 'network', /could not reach the server/],
    ['https', '', 'PROXY_CLOSED', 'network', /The proxy closed/],
  ])(
    'that refuses %s with %j is named, without its password',
    async (protocol, answer, code, kind, words) => {
      const proxy = await startHttpProxy(0, answer);
      const address = `http://me:hunter2hunter2@127.0.0.1:${proxy.port}`;
      const environment = { HTTP_PROXY: address, HTTPS_PROXY: address };
      const reply = await send(openProvider(`${protocol}://${HOST}/v1`, { environment }));
      expect(reply).toMatchObject({
        ok: false,
        failure: { kind, code, message: expect.stringMatching(words) },
      });
      if (protocol === 'https') expect(reply).toMatchObject({ failure: { isUnsent: true } });
      expect(JSON.stringify(reply)).toContain(`http://127.0.0.1:${proxy.port} (HTTP`);
      expect(JSON.stringify(reply)).not.toContain('hunter2');
      expect(proxy.asked).toHaveLength(1);
    },
  );

  it.each([
    [2, true, 'PROXY_REFUSED', 'auth'],
    [5, true, 'PROXY_LEADS_NOWHERE', 'network'],
    [0, false, 'PROXY_AUTH', 'auth'],
  ])(
    'of the kind SOCKS that answers %i (password taken: %s) is named: %s',
    async (reply, accepts, code, kind) => {
      const proxy = await startSocksProxy(0, reply, accepts);
      const environment = { ALL_PROXY: `socks5h://me:hunter2hunter2@127.0.0.1:${proxy.port}` };
      const failed = await send(openProvider(`https://${HOST}/v1`, { environment }));
      expect(failed).toMatchObject({ failure: { kind, code, isUnsent: true } });
      expect(JSON.stringify(failed)).not.toContain('hunter2');
    },
  );

  it.each(['http', 'https', 'socks5h'])(
    'that is dead is blamed in the place of the server: %s',
    async (kind) => {
      const gone = createTcpServer();
      await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve));
      const { port } = gone.address() as AddressInfo;
      await new Promise((resolve) => gone.close(resolve));
      const address = `${kind === 'socks5h' ? kind : 'http'}://127.0.0.1:${port}`;
      const environment = { HTTP_PROXY: address, HTTPS_PROXY: address };
      const reply = await send(
        openProvider(`${kind === 'http' ? kind : 'https'}://${HOST}/v1`, { environment }),
      );
      expect(reply).toMatchObject({
        failure: { kind: 'network', code: 'PROXY_UNREACHABLE', isUnsent: true },
      });
      expect(JSON.stringify(reply)).toContain(`The proxy cannot be reached (${address} (HTTP`);
      expect(JSON.stringify(reply)).not.toContain(HOST);
    },
  );
});

describe('which proxy is taken', () => {
  const all = { HTTP_PROXY: 'one:1', HTTPS_PROXY: 'http://two:2', ALL_PROXY: 'socks5h://three:3' };
  it.each([
    ['http://llm.example', all, 'http://one:1 (HTTP_PROXY)'],
    ['https://llm.example', all, 'http://two:2 (HTTPS_PROXY)'],
    ['https://llm.example', { ...all, https_proxy: 'https://four' }, 'https://four (https_proxy)'],
    ['https://llm.example', { ALL_PROXY: all.ALL_PROXY, HTTP_PROXY: 'one' }, 'socks5h://three:3 (ALL_PROXY)'],
    ['https://llm.example', { HTTP_PROXY: 'me:pw@one' }, 'http://one (HTTP_PROXY)'],
    ['https://llm.example', {}, null],
    ['http://127.0.0.1:8000', all, null],
  ])('for %s under %j: %s', (server, environment, name) => {
    expect(proxyFor(new URL(server), environment)?.name ?? null).toBe(name);
  });

  it.each([
    ['http://10.1.2.3', '10.0.0.0/8', true],
    ['http://11.1.2.3', '10.0.0.0/8', false],
    ['http://10.1.2.3', 'localhost, 10.1.2.3', true],
    ['http://[fd00::5]:80', 'fd00::/8', true],
    ['http://[fd00::5]', 'fd00::5', true],
    ['http://[fe00::5]', 'fd00::/8', false],
    ['http://llm.corp.example', '.corp.example', true],
    ['http://llm.corp.example', '*.corp.example', true],
    ['http://llm.corp.example', 'CORP.example', true],
    ['http://llmcorp.example', 'corp.example', false],
    ['http://corp.example:8000', 'corp.example:8000', true],
    ['http://corp.example', 'corp.example:8000', false],
    ['https://corp.example', 'corp.example:443', true],
    ['http://corp.example', '10.0.0.0/99 x.example,*', true],
    ['http://10.1.2.3', '10.0.0.0/99', false],
    ['http://1.10.0.0', '10.0.0.0', false],
  ])('%s is left aside by NO_PROXY=%s: %s', (server, noProxy, isExempt) => {
    const environment = { HTTP_PROXY: 'http://one', HTTPS_PROXY: 'http://one', NO_PROXY: noProxy };
    expect(proxyFor(new URL(server), environment) === null).toBe(isExempt);
  });

  it.each(['http://me:hunter2hunter2@[broken', 'ftp://me:hunter2hunter2@files', 'socks4://one'])(
    '%s is the user’s to mend',
    (HTTPS_PROXY) => {
      expect(() => proxyFor(new URL('https://llm.example'), { HTTPS_PROXY })).toThrow(
        expect.objectContaining({ code: 'PROXY_INVALID', message: expect.not.stringContaining('hunter2') }),
      );
    },
  );
});
