/** A client without mercy or help: one HTTP request, and exactly what came back, good or bad. */
import { Agent, type ClientRequest, type IncomingHttpHeaders, request } from 'node:http';
import { afterEach } from 'vitest';
import type { Clock } from '../../src/core/clock.js';
import type { JsonObject } from '../../src/core/json.js';
import type { SimulatorOptions } from '../../src/simulator/options.js';
import { type Simulator, startSimulator } from '../../src/simulator/simulator.js';
import { FakeClock } from '../support/fake-clock.js';

export interface RawReply {
  /** Null when no status line came. */
  readonly status: number | null;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Why the reply ended early, as an error code; null when it is whole. */
  readonly brokenBy: string | null;
}

export interface OpenCall {
  readonly call: ClientRequest;
  readonly reply: Promise<RawReply>;
  /** What of the body is here already. */
  received(): string;
  status(): number | null;
}

const agent = new Agent({ keepAlive: true });
const opened: Simulator[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((simulator) => simulator.close()));
});

/** A simulator that is closed after the test; its clock stands still unless one is given. */
export async function simulate(
  options: SimulatorOptions = {},
  clock: Clock = new FakeClock(),
): Promise<Simulator> {
  const simulator = await startSimulator(options, { clock });
  opened.push(simulator);
  return simulator;
}

export function chatBody(text: string, extra: JsonObject = {}): JsonObject {
  return { model: 'gpt-4o-mini', messages: [{ role: 'user', content: text }], ...extra };
}

export interface RawOptions {
  readonly method?: string;
  readonly path?: string;
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a body (an object as JSON) and gives the open call. */
export function open(simulator: Simulator, body: object | string, options: RawOptions = {}): OpenCall {
  const {
    method = 'POST',
    path = '/v1/chat/completions',
    key = 'sk-test-0123456789',
    headers = {},
  } = options;
  let status: number | null = null;
  let replyHeaders: IncomingHttpHeaders = {};
  let text = '';
  const call = request(new URL(path, simulator.url), {
    method,
    agent,
    headers: {
      'content-type': 'application/json',
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...headers,
    },
  });
  const reply = new Promise<RawReply>((resolve) => {
    const end = (brokenBy: string | null): void => resolve({ status, headers: replyHeaders, text, brokenBy });
    call.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
    call.on('response', (response) => {
      status = response.statusCode ?? null;
      replyHeaders = response.headers;
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
      response.on('end', () => end(null));
    });
  });
  call.end(method === 'GET' ? undefined : typeof body === 'string' ? body : JSON.stringify(body));
  return { call, reply, received: () => text, status: () => status };
}

/** Sends a body and waits for the whole reply. */
export function send(
  simulator: Simulator,
  body: object | string,
  options: RawOptions = {},
): Promise<RawReply> {
  return open(simulator, body, options).reply;
}

/** Asks for one document. */
export function ask(simulator: Simulator, text: string, options: RawOptions = {}): Promise<RawReply> {
  return send(simulator, chatBody(text), options);
}

/** Statuses of several documents asked one after another. */
export async function askEach(simulator: Simulator, texts: readonly string[]): Promise<(number | null)[]> {
  const statuses: (number | null)[] = [];
  for (const text of texts) statuses.push((await ask(simulator, text)).status);
  return statuses;
}

/** Asks for many documents, 16 at a time; the statuses are in the documents' order. */
export async function askAll(simulator: Simulator, texts: readonly string[]): Promise<(number | null)[]> {
  const statuses: (number | null)[] = [];
  const queue = texts.entries();
  const worker = async (): Promise<void> => {
    for (const [index, text] of queue) statuses[index] = (await ask(simulator, text)).status;
  };
  await Promise.all(Array.from({ length: 16 }, worker));
  return statuses;
}

// biome-ignore lint/suspicious/noExplicitAny: a reply's shape is what the tests are about
export function json(reply: RawReply): any {
  return JSON.parse(reply.text);
}
