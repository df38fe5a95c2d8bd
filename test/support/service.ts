/** `serve` inside the test, on a port of its own, and a short way to talk to it. */
import { Interrupts } from '../../src/app/interrupts.js';
import { type Clock, systemClock } from '../../src/core/clock.js';
import { runInProcess } from './in-process.js';
import { waitFor } from './wait-for.js';

export interface ServiceUnderTest {
  readonly url: string;
  /** @param body sent as JSON; a text as it is */
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Until a task has ended. */
  ended(id: string): Promise<Record<string, unknown>>;
  stderr(): string;
  /** Asks it to stop, and waits until it has. @returns its exit code */
  stop(): Promise<number | null>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the service answers
  readonly json: any;
}

export async function startService(
  folder: string,
  args: readonly string[] = [],
  options: { readonly environment?: Record<string, string>; readonly clock?: Clock } = {},
): Promise<ServiceUnderTest> {
  const clock = options.clock ?? systemClock;
  const interrupts = new Interrupts(clock);
  let said = '';
  let failed: unknown = null;
  const running = runInProcess(['serve', '--port', '0', ...args], {
    folder,
    clock,
    interrupts,
    ...(options.environment === undefined ? {} : { environment: options.environment }),
    onStderr: (text) => {
      said += text;
    },
  });
  running.then(
    ({ stderr }) => {
      failed = new Error(stderr);
    },
    (error: unknown) => {
      failed = error;
    },
  );
  await waitFor('the service to listen', () => failed !== null || said.includes('Listening on'));
  if (failed !== null) throw failed;
  const url = /Listening on (\S+)\./.exec(said)?.[1] ?? '';
  const ask: ServiceUnderTest['ask'] = async (method, path, body, headers = {}) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const response = await fetch(`${url}${path}`, {
      method,
      redirect: 'manual',
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: text }),
    });
    const answered = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      text: answered,
      get json() {
        return JSON.parse(answered);
      },
    };
  };
  return {
    url,
    ask,
    async ended(id) {
      let task: Record<string, unknown> = {};
      await waitFor(`task ${id}`, async () => {
        task = (await ask('GET', `/v1/tasks/${id}`)).json;
        return task['status'] === 'completed' || task['status'] === 'failed';
      });
      return task;
    },
    stderr: () => said,
    async stop() {
      if (interrupts.count === 0) interrupts.raise('SIGTERM');
      return (await running).exitCode;
    },
  };
}
