/** Small real servers for the provider to talk to, and a provider that talks to them. */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../../src/core/clock.js';
import { createOpenAIProvider, type OpenAIProviderOptions } from '../../../src/provider/openai/client.js';
import type { Provider, ProviderReply, SendOptions } from '../../../src/provider/provider.js';
import type { RemoteProvider } from '../../../src/provider/remote-batches.js';
import type { BackgroundProvider } from '../../../src/provider/remote-responses.js';

export const SECRET = 'sk-live-Zq7Lm2Xw9Rt4Yb8Nc3Vd6';

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export interface Loopback {
  /** The base URL to give to a provider. */
  readonly baseUrl: string;
  readonly port: number;
  readonly requests: SeenRequest[];
  readonly openSockets: Set<Socket>;
  /** Connections that have ended. */
  readonly closedSockets: () => number;
  /** The most connections that were open at once. */
  readonly peakSockets: () => number;
}

/** An HTTP server that reads each request whole, then lets `answer` reply. */
export async function startServer(
  answer: (request: SeenRequest, response: ServerResponse) => void,
): Promise<Loopback> {
  const requests: SeenRequest[] = [];
  const listener: RequestListener = (incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const seen = {
        method: incoming.method ?? '',
        url: incoming.url ?? '',
        headers: incoming.headers,
        body: Buffer.concat(chunks),
      };
      requests.push(seen);
      answer(seen, response);
    });
  };
  return listen(createServer(listener), requests);
}

/** A server that speaks raw bytes: called once for each request head that arrives. */
export function startRawServer(answer: (socket: Socket) => void): Promise<Loopback> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', () => answer(socket));
  });
  return listen(server, []);
}

async function listen(server: Server, requests: SeenRequest[]): Promise<Loopback> {
  const openSockets = new Set<Socket>();
  let peak = 0;
  let closed = 0;
  server.on('connection', (socket: Socket) => {
    openSockets.add(socket);
    peak = Math.max(peak, openSockets.size);
    socket.on('close', () => {
      openSockets.delete(socket);
      closed += 1;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    for (const socket of openSockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    port,
    requests,
    openSockets,
    closedSockets: () => closed,
    peakSockets: () => peak,
  };
}

export const BODY = '{"model":"m","messages":[{"role":"user","content":"hi"}]}';

export function completionText(content = 'fine'): string {
  return JSON.stringify({
    model: 'm-1',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 },
  });
}

export function answerJson(response: ServerResponse, text: string, status = 200, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(text);
}

/** A provider that is closed when the test ends. */
export function openProvider(
  baseUrl: string,
  options: Partial<OpenAIProviderOptions> = {},
): RemoteProvider & BackgroundProvider {
  const provider = createOpenAIProvider({
    baseUrl,
    apiKey: SECRET,
    maxConnections: 4,
    clock: systemClock,
    ...options,
  });
  onTestFinished(() => provider.close());
  return provider;
}

export function send(provider: Provider, options: Partial<SendOptions> = {}): Promise<ProviderReply> {
  return provider.send(
    { endpoint: 'chat', parts: 1, bodyJson: BODY },
    { timeoutMs: 60_000, signal: new AbortController().signal, ...options },
  );
}

/** A clock that stands still; `fire` runs what is due next. Counts what was left behind. */
export function manualClock(): Clock & { fire(): void; pending(): number } {
  const callbacks = new Set<() => void>();
  return {
    now: () => Date.parse('2026-03-01T12:00:00Z'),
    monotonicMs: () => 0,
    sleep: () => Promise.resolve(),
    after(_delayMs, callback) {
      callbacks.add(callback);
      return () => callbacks.delete(callback);
    },
    fire() {
      const [next] = callbacks;
      if (next === undefined) throw new Error('no timer is pending');
      callbacks.delete(next);
      next();
    },
    pending: () => callbacks.size,
  };
}

/** Resolves when `condition` holds; the test's own time limit is the deadline. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}
