/** Many clients hand tasks in, some of them twice, while the service is killed: what was promised, and what became of it. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import type { RunningProgram } from './program.js';
import { type SimulatorProcess, startSimulatorProcess } from './simulator-process.js';
import { waitFor } from './wait-for.js';
import { answerTo, Workspace } from './workspace.js';

export interface ServedLoad {
  readonly clients: number;
  readonly tasks: number;
  readonly kills: number;
  readonly concurrency: number;
}

export interface ServedLoadReport {
  readonly violations: readonly string[];
  readonly killed: number;
  readonly repeatedSubmissions: number;
  /** Calls that were in the ledger when the service was killed, of all kills. */
  readonly openAtKills: number;
  readonly repeatedCalls: number;
  readonly webhooks: number;
}

const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;
/** One in so many is handed in once more though its client has its answer. */
const REPEATED_ONE_IN = 4;

export async function serveThroughKills(load: ServedLoad): Promise<ServedLoadReport> {
  const workspace = new Workspace();
  const simulator = await startSimulatorProcess();
  const receiver = await openReceiver();
  const service = new KilledService(workspace, simulator, receiver.host, load.concurrency);
  try {
    await service.start();
    const ids = new Map<number, string>();
    let repeatedSubmissions = 0;
    const violations: string[] = [];
    const client = async (first: number): Promise<void> => {
      for (let number = first; number < load.tasks; number += load.clients) {
        const id = await service.submit(number, receiver.url);
        ids.set(number, id);
        if (number % REPEATED_ONE_IN !== 0) continue;
        repeatedSubmissions += 1;
        const again = await service.submit(number, receiver.url);
        if (again !== id) violations.push(`key ${number} gave ${id}, and then ${again}`);
      }
    };
    const clients = Array.from({ length: load.clients }, (_, first) => client(first));
    for (let kill = 1; kill <= load.kills; kill += 1) {
      await waitFor('submissions', () => ids.size >= (load.tasks * kill) / (load.kills + 1), 600_000);
      await service.killAndStart();
    }
    await Promise.all(clients);
    await waitFor('all tasks to end', async () => (await service.open()) === 0, 600_000);
    await waitFor('all webhooks', () => receiver.messages.size >= load.tasks, 600_000);

    for (const [number, id] of ids) {
      const task = await service.task(id);
      if (task.status !== 'completed') violations.push(`${id} is ${task.status}`);
      if (task.result?.output !== answerTo(textOf(number))) violations.push(`${id} has another answer`);
      const messages = receiver.messages.get(id) ?? new Set();
      if (messages.size !== 1) violations.push(`${id} was told under ${messages.size} ids`);
    }
    const [stored] = workspace.query<{ tasks: number }>('SELECT count(*) AS tasks FROM tasks');
    if (stored?.tasks !== load.tasks) violations.push(`the store has ${stored?.tasks} tasks`);
    const { repeatedCalls, documents } = await simulator.books();
    if (documents !== load.tasks) violations.push(`the server saw ${documents} documents`);
    // Open, or answered and not yet committed: as the ledger has it.
    const [ledger] = workspace.query<{ lost: number }>('SELECT coalesce(sum(lost), 0) AS lost FROM calls');
    const openAtKills = ledger?.lost ?? 0;
    if (repeatedCalls > openAtKills) {
      violations.push(`${repeatedCalls} calls were repeated, ${openAtKills} were open`);
    }
    if (openAtKills > 2 * load.kills * load.concurrency) violations.push(`${openAtKills} calls were open`);
    violations.push(...receiver.violations);
    const webhooks = receiver.messages.size;
    return { violations, killed: service.killed, repeatedSubmissions, openAtKills, repeatedCalls, webhooks };
  } finally {
    await service.stop();
    await simulator.stop();
    receiver.close();
    workspace.remove();
  }
}

function textOf(number: number): string {
  return `Served document ${number}.`;
}

interface Task {
  readonly status: string;
  readonly result: { readonly output: string } | null;
}

class KilledService {
  killed = 0;
  #program: RunningProgram | null = null;
  #url = '';
  #port = '0';

  constructor(
    private readonly workspace: Workspace,
    private readonly simulator: SimulatorProcess,
    private readonly webhookHost: string,
    private readonly concurrency: number,
  ) {}

  async start(): Promise<void> {
    const flags = ['--base-url', this.simulator.url, '--concurrency', String(this.concurrency)];
    const program = this.workspace.start(
      ['serve', '--port', this.#port, '--allow-webhook-host', this.webhookHost, '--quiet', ...flags],
      { environment: { LLM_BATCH_WEBHOOK_SECRET: SECRET }, deadlineMs: 600_000 },
    );
    this.#program = program;
    const line = await waitFor(
      'the service to listen',
      () => {
        if (program.child.exitCode !== null) throw new Error(program.stderr());
        return program.stdout().includes('\n') && program.stdout();
      },
      60_000,
    );
    this.#url = JSON.parse(line).url;
    this.#port = new URL(this.#url).port;
  }

  async killAndStart(): Promise<void> {
    this.#program?.kill('SIGKILL');
    if ((await this.#program?.ended)?.signal === 'SIGKILL') this.killed += 1;
    await this.start();
  }

  /** Again and again until the service says that it has it. */
  submit(number: number, webhookUrl: string): Promise<string> {
    const messages = [{ role: 'user', content: textOf(number) }];
    return waitFor(
      `task ${number} to be taken`,
      async () => {
        const response = await this.#ask('/v1/tasks', {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'idempotency-key': `key-${number}` },
          body: JSON.stringify({ request: { model: 'small', messages }, webhook_url: webhookUrl }),
        });
        if (response === null || response.status >= 500) return null;
        const { id } = (await response.json()) as { id?: string };
        if (id === undefined) throw new Error(`task ${number} was refused with ${response.status}`);
        return id;
      },
      600_000,
    );
  }

  async task(id: string): Promise<Task> {
    const response = await this.#ask(`/v1/tasks/${id}`);
    if (response?.status !== 200) return { status: `answered with ${response?.status}`, result: null };
    return (await response.json()) as Task;
  }

  async open(): Promise<number | null> {
    const response = await this.#ask('/v1/runs/served');
    if (response === null) return null;
    const { documents } = (await response.json()) as { documents: Record<string, number> };
    return (documents['pending'] ?? 0) + (documents['in_progress'] ?? 0);
  }

  async stop(): Promise<void> {
    this.#program?.kill('SIGTERM');
    await this.#program?.ended;
  }

  /** Null where the service is not there, or was killed before it had answered. */
  async #ask(path: string, init: RequestInit = {}): Promise<Response | null> {
    try {
      const response = await fetch(`${this.#url}${path}`, init);
      const body = await response.text();
      return new Response(body === '' ? null : body, { status: response.status });
    } catch {
      return null;
    }
  }
}

async function openReceiver() {
  /** Ids of messages by task. */
  const messages = new Map<string, Set<string>>();
  const violations: string[] = [];
  const webhook = new Webhook(SECRET);
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      const id = String(request.headers['webhook-id']);
      try {
        const task = webhook.verify(body, request.headers as Record<string, string>) as { id: string };
        messages.set(task.id, (messages.get(task.id) ?? new Set()).add(id));
      } catch (error) {
        violations.push(`${id} is not signed: ${String(error)}`);
      }
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...{ host, url: `http://${host}/hook`, messages, violations },
    close(): void {
      server.closeAllConnections();
      server.close();
    },
  };
}
