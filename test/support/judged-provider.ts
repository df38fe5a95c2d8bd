/**
 * A provider without a network: requests go straight to the simulator's judge, on the test's own clock, and what
 * comes back is read as if it had come over the wire. The judge shares no code with the limiter.
 */
import type { Clock } from '../../src/core/clock.js';
import { isJsonObject } from '../../src/core/json.js';
import { readAnswer } from '../../src/provider/openai/answer.js';
import { classifyRefusal, type FailureContext } from '../../src/provider/openai/classify.js';
import { readErrorObject } from '../../src/provider/openai/error-body.js';
import { type HeaderReader, readRateLimitHints } from '../../src/provider/openai/headers.js';
import type { Provider } from '../../src/provider/provider.js';
import { Books, type SimulatorBooks } from '../../src/simulator/books.js';
import { chatCompletions } from '../../src/simulator/chat-completions.js';
import { Judge } from '../../src/simulator/judge.js';
import type { SimulatorOptions } from '../../src/simulator/options.js';

/** A call as it reached the server. */
export interface Arrival {
  /** On the monotonic clock. */
  readonly atMs: number;
  readonly status: number;
  /** The text of the last message. */
  readonly text: string;
}

export interface JudgedProvider extends Provider {
  readonly arrivals: readonly Arrival[];
  books(): SimulatorBooks;
}

export interface WayOptions {
  /** Time from the client to the server, and from there back; 1 ms each by default. */
  readonly wayThereMs?: () => number;
  readonly wayBackMs?: () => number;
}

export function judgedProvider(
  options: SimulatorOptions,
  clock: Clock,
  { wayThereMs = () => 1, wayBackMs = () => 1 }: WayOptions = {},
): JudgedProvider {
  const books = new Books(clock.monotonicMs());
  const judge = new Judge(options, { books, log: null, clock });
  const arrivals: Arrival[] = [];
  return {
    arrivals,
    books: () => judge.snapshot(),
    async send(request) {
      const { bodyJson } = request;
      await clock.sleep(wayThereMs());
      const verdict = judge.judge({ endpoint: chatCompletions, bodyText: bodyJson, key: null, port: 0 });
      const { reply } = verdict;
      if (reply.type !== 'send') throw new Error(`no such reply without a network: ${reply.type}`);
      arrivals.push({ atMs: clock.monotonicMs(), status: reply.status, text: lastTextOf(bodyJson) });
      await clock.sleep(verdict.delayMs + wayBackMs());

      const headers = readerOf({ 'content-type': reply.contentType, ...reply.headers, ...verdict.headers });
      const context: FailureContext = { url: 'http://simulator', nowMs: clock.now(), redact: (text) => text };
      const { status, body } = reply;
      if (status === 200)
        return readAnswer(request, { status, headers, content: body, isUtf8: true }, context);
      return {
        ok: false,
        failure: classifyRefusal({ status, headers, error: readErrorObject(body) }, context),
        usage: null,
        costMicroUsd: null,
        hints: readRateLimitHints(headers, context.nowMs),
      };
    },
    probe: () => Promise.reject(new Error('the judge keeps no list of models')),
    async close() {},
  };
}

function readerOf(headers: Readonly<Record<string, string>>): HeaderReader {
  const byName = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return { get: (name) => byName.get(name) ?? null };
}

function lastTextOf(bodyJson: string): string {
  const body: unknown = JSON.parse(bodyJson);
  const messages = isJsonObject(body) && Array.isArray(body['messages']) ? body['messages'] : [];
  const last = messages.at(-1);
  return isJsonObject(last) ? String(last['content']) : '';
}
