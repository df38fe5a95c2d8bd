/** Servers that can be taken away and given back: one that answers like a model, and a proxy on the way to it. */
import { createServer, type IncomingMessage, request as requestOf, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https';
import { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import type { Certificate } from './certificate.js';
import { seededRandom } from './seeded-random.js';

/** Listens on loopback, and again on the port that it had. */
class Listener<Of extends Server> {
  readonly server: Of;
  readonly #sockets = new Set<Socket>();
  #port = 0;

  constructor(server: Of) {
    this.server = server;
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  get port(): number {
    return this.#port;
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (this.server.address() as AddressInfo).port;
  }

  /** Nothing accepts connections there any more, and those that are open break. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.dropConnections();
    await closed;
  }

  dropConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** What comes instead of an answer. */
export type Fault = { readonly status: number; readonly body: string } | 'reset' | 'hang';

const FASTEST_MS = 100;
const SLOWEST_MS = 300;
/** What a broken server says comes sooner than any answer. */
const FAULT_AFTER_MS = 5;
/** Of each answer. */
export const ANSWER_TOKENS = 10;
export const ANSWER_TEXT = 'Yes.';

export class OutageServer extends Listener<Server> {
  readonly #random = seededRandom(11);
  #fault: Fault | null = null;
  #faultedKey: string | null = null;
  /** When each answer left (monotonic), and whose call it was for. */
  readonly answers: { readonly atMs: number; readonly key: string }[] = [];

  /** @param certificate null: plain HTTP */
  constructor(certificate: Certificate | null) {
    const handle = (request: IncomingMessage, response: ServerResponse): void => {
      request.resume().on('end', () => {
        const answerMs = FASTEST_MS + (SLOWEST_MS - FASTEST_MS) * this.#random();
        const key = request.headers.authorization?.replace('Bearer ', '') ?? '';
        setTimeout(
          () => this.#respond(response, key),
          this.#faultFor(key) === null ? answerMs : FAULT_AFTER_MS,
        );
      });
    };
    super(certificate === null ? createServer(handle) : createSecureServer(certificate, handle));
  }

  /**
   * From now on, for the calls that are open too; null: none any more.
   * @param key the only one whose calls meet it; null: all do
   */
  meet(fault: Fault | null, key: string | null = null): void {
    this.#fault = fault;
    this.#faultedKey = key;
  }

  #faultFor(key: string): Fault | null {
    return this.#faultedKey === null || this.#faultedKey === key ? this.#fault : null;
  }

  /** To whoever connects from now on; the others have to. */
  show(certificate: Certificate): void {
    (this.server as SecureServer).setSecureContext(certificate);
    this.dropConnections();
  }

  #respond(response: ServerResponse, key: string): void {
    if (response.socket === null || response.socket.destroyed) return;
    const fault = this.#faultFor(key);
    if (fault === null) {
      this.answers.push({ atMs: performance.now(), key });
      response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER);
      return;
    }
    if (fault === 'reset') response.socket.resetAndDestroy();
    else if (fault !== 'hang') {
      const type = fault.body.startsWith('{') ? 'application/json' : 'text/html';
      response.writeHead(fault.status, { 'content-type': type }).end(fault.body);
    }
  }
}

const ANSWER = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 0,
  model: 'test-model',
  choices: [{ index: 0, message: { role: 'assistant', content: ANSWER_TEXT }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 20, completion_tokens: ANSWER_TOKENS, total_tokens: 20 + ANSWER_TOKENS },
});

/** A forward proxy for whom every host is this machine. */
export class LoopbackProxy extends Listener<Server> {
  constructor() {
    super(createServer((request, response) => this.#forward(request, response)));
    this.server.on('connect', (request: IncomingMessage, client: Socket) => this.#tunnel(request, client));
  }

  /** The absolute form of plain HTTP. */
  #forward(request: IncomingMessage, response: ServerResponse): void {
    const { port, pathname, search } = new URL(request.url ?? '');
    const { method, headers } = request;
    const options = { host: '127.0.0.1', port, path: pathname + search, method, headers };
    const onward = requestOf(options, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  }

  #tunnel(request: IncomingMessage, client: Socket): void {
    const server = connect(Number(request.url?.split(':').at(-1)), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      server.pipe(client).pipe(server);
    });
    server.on('error', () => client.destroy());
    server.on('close', () => client.destroy());
    client.on('close', () => server.destroy());
  }
}
