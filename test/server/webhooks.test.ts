/** Webhooks: what a receiver gets, when it is tried again, and where none may go. */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { WebhookTry } from '../../src/core/served-task.js';
import { AddressGuard, isPublic } from '../../src/server/webhooks/address-guard.js';
import { WebhookOutbox } from '../../src/server/webhooks/outbox.js';
import { readSecrets } from '../../src/server/webhooks/signature.js';
import type { ServedStore } from '../../src/store/served-store.js';
import type { Store } from '../../src/store/store.js';
import { runInProcess } from '../support/in-process.js';
import { jsonLines } from '../support/program.js';
import { type ServiceUnderTest, startService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';
import { Workspace } from '../support/workspace.js';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const OLD_SECRET = `whsec_${Buffer.alloc(24, 9).toString('base64')}`;

interface Received {
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** Notes every connection, so that one that was refused before it was made shows. */
class Receiver {
  readonly received: Received[] = [];
  connections = 0;
  /** One for each message; the last goes on. */
  answers: ((request: IncomingMessage) => { status: number; location?: string } | 'hang' | 'reset')[] = [
    () => ({ status: 204 }),
  ];
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk) => {
        body += chunk;
      });
      request.on('end', () => {
        this.received.push({ headers: request.headers as Record<string, string>, body });
        const next = this.answers.length > 1 ? this.answers.shift() : this.answers[0];
        const answer = next?.(request) ?? { status: 204 };
        if (answer === 'reset') request.socket.destroy();
        if (typeof answer === 'string') return;
        const { status, location } = answer;
        response.writeHead(status, location === undefined ? {} : { location }).end('its own words');
      });
    });
    this.#server.on('connection', () => {
      this.connections += 1;
    });
  }

  async open(): Promise<this> {
    await new Promise<void>((resolve) => {
      this.#server.listen(0, '127.0.0.1', resolve);
    });
    return this;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hook`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

let receiver: Receiver;

beforeEach(async () => {
  receiver = await new Receiver().open();
});

afterEach(() => {
  receiver.close();
});

const asking = { request: { messages: [{ role: 'user', content: 'x' }] } };

describe('a webhook of the service', () => {
  let workspace: Workspace;
  let service: ServiceUnderTest;

  async function serve(secret = SECRET): Promise<ServiceUnderTest> {
    workspace = new Workspace();
    service = await startService(
      workspace.folder,
      ['--simulate', '--allow-webhook-host', `127.0.0.1:${receiver.port}`],
      { environment: { LLM_BATCH_WEBHOOK_SECRET: secret } },
    );
    return service;
  }

  afterEach(async () => {
    await service.stop();
    workspace.remove();
  });

  it('posts what GET tells, signed with each of the secrets, as another implementation finds', async () => {
    const { ask, ended } = await serve(`${SECRET} ${OLD_SECRET}`);
    const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' };
    const { json } = await ask('POST', '/v1/tasks', { ...asking, webhook_url: receiver.url }, trace);
    await ended(json.id);
    const message = await waitFor('the webhook', () => receiver.received[0]);
    expect(message.body).toBe((await ask('GET', `/v1/tasks/${json.id}`)).text);
    expect(message.headers).toMatchObject({ 'content-type': 'application/json; charset=utf-8', ...trace });
    expect(message.headers['webhook-id']).toMatch(/^msg_\w+$/);
    for (const secret of [SECRET, OLD_SECRET]) {
      expect(new Webhook(secret).verify(message.body, message.headers)).toMatchObject({
        status: 'completed',
      });
    }
    const other = new Webhook(`whsec_${Buffer.alloc(32, 1).toString('base64')}`);
    expect(() => other.verify(message.body, message.headers)).toThrow();
    expect(() => new Webhook(SECRET).verify(`${message.body} `, message.headers)).toThrow();
  });

  it('that its receiver gives up is listed, and sent again by command under its id', async () => {
    receiver.answers = [() => ({ status: 410 }), () => ({ status: 204 })];
    const { ask, ended } = await serve();
    const { json } = await ask('POST', '/v1/tasks', { ...asking, webhook_url: receiver.url });
    await ended(json.id);
    const program = (...args: string[]) => runInProcess(args, { folder: workspace.folder });
    const [parked] = await waitFor('it to be parked', async () => {
      const lines = jsonLines((await program('webhooks', 'list')).stdout);
      return lines.length > 0 && lines;
    });
    const id = receiver.received[0]?.headers['webhook-id'];
    expect(parked).toEqual({
      ...{ task: json.id, webhook_id: id, url: receiver.url, attempts: 1 },
      ...{ http_status: 410, problem: 'answered 410' },
    });
    expect((await program('webhooks', 'retry')).stderr).toContain('1 webhook');
    await waitFor('it to come again', () => receiver.received.length === 2);
    expect(receiver.received[1]?.headers['webhook-id']).toBe(id);
    await waitFor('it to be noted', async () =>
      (await program('webhooks', 'list')).stderr.includes('1 delivered'),
    );
    expect(await program('webhooks', 'list')).toMatchObject({
      ...{ exitCode: 0, stdout: '' },
      stderr: 'No webhook was given up; 0 to be sent, 1 delivered.\n',
    });
    for (const verb of ['list', 'retry']) {
      expect((await program('webhooks', verb, json.id)).stderr).toContain(`${json.id} was not given up`);
      expect(await program('webhooks', verb, 'task_x')).toMatchObject({
        ...{ exitCode: 2, stderr: expect.stringContaining('no task "task_x"') },
      });
    }
  });
});

/** A outbox over an outbox of the test's own, by a clock that jumps to whatever is waited for. */
async function deliver(
  url: string,
  guard: AddressGuard,
  tries = 1,
): Promise<{ readonly noted: WebhookTry[]; readonly waitedMs: number[] }> {
  const noted: WebhookTry[] = [];
  const waitedMs: number[] = [];
  let attempts = 0;
  let isDue = true;
  const message = { taskId: 1, runId: 1, publicId: 'task_1', url, messageId: 'msg_1', traceparent: null };
  const served: Partial<ServedStore> = {
    nextWebhookMs: async () => (isDue ? 0 : null),
    async takeWebhooks() {
      isDue = false;
      attempts += 1;
      return [{ ...message, attempts: attempts - 1 }];
    },
    async noteWebhooks(done) {
      noted.push(...done);
      const [{ outcome } = { outcome: 'parked' as const }] = done;
      if (typeof outcome === 'object') waitedMs.push(outcome.againInMs);
      isDue = typeof outcome === 'object' && attempts < tries;
      if (!isDue) outbox.stop();
    },
  };
  const row = { taskId: 1, line: 1, key: 'task_1', state: 'cancelled', attempts: 0 };
  const store = { served, readTasks: async () => [row] } as unknown as Store;
  const hurried = {
    ...systemClock,
    after: (delayMs: number, callback: () => void) => systemClock.after(Math.min(delayMs, 300), callback),
  };
  const outbox = new WebhookOutbox({
    ...{ store, guard, secrets: readSecrets(SECRET), clock: hurried, random: () => 0 },
    trace: (_name, traceparent, work) => work(traceparent),
  });
  await outbox.run();
  return { noted, waitedMs };
}

describe('a receiver that does not take a message', () => {
  const allowed = (): AddressGuard => new AddressGuard([`127.0.0.1:${receiver.port}`]);

  it('is tried again after 5 s, 5 min, 30 min, 2 h, 5 h … with the same id and a new time, then given up', async () => {
    receiver.answers = [() => ({ status: 503 })];
    const { noted, waitedMs } = await deliver(receiver.url, allowed(), 20);
    const HOUR = 3_600_000;
    expect(waitedMs).toEqual([
      5_000,
      300_000,
      1_800_000,
      ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR),
    ]);
    expect(noted.at(-1)).toMatchObject({ outcome: 'parked', httpStatus: 503, problem: 'answered 503' });
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(receiver.received).toHaveLength(10);
  });

  it.each([
    [
      'that redirects has failed, and nobody goes there',
      () => ({ status: 302, location: '/elsewhere' }),
      302,
    ],
    ['that hangs is left', () => 'hang' as const, null],
    ['that resets the connection has failed', () => 'reset' as const, null],
    ['that answers 404 has failed', () => ({ status: 404 }), 404],
  ])('one %s', async (_, answer, httpStatus) => {
    receiver.answers = [answer];
    const { noted } = await deliver(receiver.url, allowed());
    expect(noted).toMatchObject([{ httpStatus, outcome: { againInMs: 5_000 } }]);
    expect(receiver.received).toHaveLength(1);
  });

  it('that nobody listens at has failed', async () => {
    const url = `http://127.0.0.1:${receiver.port}/hook`;
    const guard = allowed();
    receiver.close();
    const { noted } = await deliver(url, guard);
    expect(noted).toMatchObject([{ httpStatus: null, problem: 'no connection: ECONNREFUSED' }]);
  });
});

describe('an inside address', () => {
  /** As `new URL` and resolvers understand them; PORT is that of a listener inside. */
  const SPELLINGS = [
    ...['127.0.0.1', '127.1', '0x7f.1', '2130706433', '0177.0.0.1', '①②⑦.0.0.1', '0.0.0.0', '0'],
    ...['10.0.0.1', '172.16.0.1', '192.168.0.1', '169.254.169.254', '100.64.0.1', '192.0.0.1', '198.18.0.1'],
    ...[
      '240.0.0.1',
      '255.255.255.255',
      '224.0.0.1',
      '[::1]',
      '[::]',
      '[::ffff:127.0.0.1]',
      '[::ffff:7f00:1]',
    ],
    ...[
      '[::127.0.0.1]',
      '[64:ff9b::7f00:1]',
      '[2002:7f00:1::]',
      '[fc00::1]',
      '[fe80::1]',
      '[fec0::1]',
      '[ff02::1]',
    ],
  ];

  it.each(SPELLINGS)(
    '%s is refused where it is written, and reaches nobody when it is tried',
    async (host) => {
      const guard = new AddressGuard([]);
      const url = `https://${host}:${receiver.port}/hook`;
      expect(guard.refuse(url)).toContain('private, local or reserved');
      const { noted } = await deliver(url, guard);
      expect(noted).toMatchObject([{ httpStatus: null, problem: expect.stringContaining('the address') }]);
      expect(receiver.connections).toBe(0);
    },
  );

  it.each([
    ['localhost', undefined],
    ['a name that leads inside', [{ address: '127.0.0.1', family: 4 }]],
    [
      'a name of which one address is inside',
      ['93.184.215.14', '127.0.0.1'].map((address) => ({ address, family: 4 })),
    ],
    ['a name that leads inside in IPv6', [{ address: '::ffff:127.0.0.1', family: 6 }]],
  ])('%s is refused where the socket looks it up', async (name, found) => {
    const guard =
      found === undefined ? new AddressGuard([]) : new AddressGuard([], async () => found as never);
    const host = name === 'localhost' ? name : 'receiver.example';
    const url = `https://${host}:${receiver.port}/hook`;
    expect(guard.refuse(url)).toBeNull();
    const { noted } = await deliver(url, guard);
    expect(noted).toMatchObject([
      { httpStatus: null, problem: `${host} leads to a private, local or reserved address` },
    ]);
    expect(receiver.connections).toBe(0);
  });

  it('is looked for by the socket itself at each try, so that no name has time to lead elsewhere', async () => {
    let asked = 0;
    const guard = new AddressGuard([], async () => {
      asked += 1;
      return [{ address: '127.0.0.1', family: 4 }];
    });
    await deliver(`https://rebind.example:${receiver.port}/`, guard, 2);
    expect(asked).toBe(2);
    expect(receiver.connections).toBe(0);
  });

  it.each([
    ['http://receiver.example/', 'https'],
    ['ftp://receiver.example/', 'https'],
    ['receiver', 'https'],
    ['https://user:word@receiver.example/', 'user name'],
    ['https://receiver.example:25/', 'port'],
  ])('%s is refused', (url, why) => {
    expect(new AddressGuard([]).refuse(url)).toContain(why);
  });

  it('of the operator is allowed by its name, with or without a port, and no other is with it', () => {
    const guard = new AddressGuard(['hooks.internal', '10.0.0.5:8080']);
    expect(guard.refuse('http://hooks.internal:9000/')).toBeNull();
    expect(guard.refuse('http://10.0.0.5:8080/')).toBeNull();
    expect(guard.refuse('http://10.0.0.5:8081/')).not.toBeNull();
    expect(guard.refuse('https://receiver.example/hook')).toBeNull();
    expect(isPublic('8.8.8.8')).toBe(true);
    expect(isPublic('2606:4700:4700::1111')).toBe(true);
    expect(isPublic('nonsense')).toBe(false);
  });
});

describe('a secret', () => {
  it.each(['secret', 'whsec_', `whsec_${Buffer.alloc(23).toString('base64')}`, 'whsec_not base64!!!!'])(
    '%s is refused, and not repeated',
    (secret) => {
      expect(() => readSecrets(secret)).toThrow(/^must/);
    },
  );
});
