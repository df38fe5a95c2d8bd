/** Workers in processes of their own over one PostgreSQL and one simulator, with what became of each document. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { systemClock } from '../../src/core/clock.js';
import { settingsToJson } from '../../src/runs/run-settings.js';
import { simulatedAnswer } from '../../src/simulator/answer.js';
import { openStore } from '../../src/store/open.js';
import type { Store } from '../../src/store/store.js';
import { temporaryFolder } from './program.js';
import { type SimulatorProcess, startSimulatorProcess } from './simulator-process.js';
import { plainRunSettings } from './stored-run.js';
import { answerTo } from './workspace.js';

const CHILD_PATH = join(import.meta.dirname, 'worker-child.mjs');

export interface FleetOptions {
  readonly storeUrl: string;
  readonly documents: number;
  /** Calls open at once of each worker. */
  readonly concurrency: number;
  readonly leaseMs: number;
  /** Shared by all, and enforced by the simulator over any so many milliseconds. */
  readonly requestsPerWindow: number;
  readonly windowMs: number;
  readonly latencyMs: { readonly min: number; readonly max: number };
}

export interface FleetWorker {
  readonly pid: number;
  readonly events: readonly Record<string, unknown>[];
  /** Documents whose answers, or whatever else was to be noted of them, were refused. */
  readonly refused: () => number;
  /** Exit code; null where a signal ended it. */
  readonly ended: Promise<number | null>;
  kill(signal: NodeJS.Signals): void;
}

let fleets = 0;

export class Fleet {
  readonly store: Store;
  readonly simulator: SimulatorProcess;
  readonly runId: number;
  readonly workers: FleetWorker[] = [];
  /** Exit codes of workers that ended badly by themselves. */
  readonly crashes: number[] = [];
  readonly #options: FleetOptions;
  readonly #schemaName: string;
  readonly #folder = temporaryFolder();

  private constructor(
    store: Store,
    simulator: SimulatorProcess,
    runId: number,
    options: FleetOptions,
    schemaName: string,
  ) {
    this.store = store;
    this.simulator = simulator;
    this.runId = runId;
    this.#options = options;
    this.#schemaName = schemaName;
  }

  /** With its documents in the store, and nobody at work. */
  static async of(options: FleetOptions): Promise<Fleet> {
    fleets += 1;
    const { storeUrl, documents, requestsPerWindow, windowMs, latencyMs } = options;
    const schemaName = `fleet_${process.pid}_${fleets}`;
    const store = await openStore(storeUrl, { mode: 'write', clock: systemClock, schemaName });
    const simulator = await startSimulatorProcess({
      ...{ latencyMs, headers: 'none', rpm: (requestsPerWindow * 60_000) / windowMs },
      enforceOverMs: windowMs,
    });
    const run = await store.createRun({
      ...{ name: 'docs', inputPath: '/data/docs.jsonl', simulated: false, createdAtMs: Date.now() },
      settings: settingsToJson(plainRunSettings({ guard: false }), store),
    });
    for (let line = 1; line <= documents; line += 1_000) {
      const count = Math.min(1_000, documents - line + 1);
      await store.addTasks(
        run.id,
        Array.from({ length: count }, (_, index) => {
          const key = `doc-${line + index}`;
          const body = JSON.stringify({ id: key, text: textOf(line + index) });
          return {
            ...{ line: line + index, key, occurrence: 0, requestHash: key, priority: 0, body },
            metadataJson: null,
          };
        }),
      );
    }
    await store.updateRun(run.id, { status: 'open' });
    return new Fleet(store, simulator, run.id, options, schemaName);
  }

  start(idleExitMs: number): FleetWorker {
    const child = spawn(process.execPath, [CHILD_PATH], { stdio: ['pipe', 'pipe', 'inherit'] });
    const { concurrency, leaseMs, requestsPerWindow, windowMs, storeUrl } = this.#options;
    child.stdin.on('error', () => undefined);
    child.stdin.write(
      `${JSON.stringify({
        ...{ storeUrl, schemaName: this.#schemaName, baseUrl: this.simulator.url },
        ...{ concurrency, leaseMs, requestsPerWindow, windowMs, idleExitMs },
        salvagePath: join(this.#folder.path, `salvage-${child.pid}`),
      })}\n`,
    );
    const events: Record<string, unknown>[] = [];
    createInterface({ input: child.stdout }).on('line', (line) => {
      events.push(JSON.parse(line) as Record<string, unknown>);
    });
    const worker: FleetWorker = {
      pid: child.pid ?? 0,
      events,
      refused: () =>
        events
          .filter(({ type }) => type === 'leases_lost')
          .reduce((sum, { documents }) => sum + Number(documents), 0),
      ended: once(child, 'exit').then(([code]) => code as number | null),
      kill: (signal) => void child.kill(signal),
    };
    void worker.ended.then((code) => code !== null && code > 0 && this.crashes.push(code));
    this.workers.push(worker);
    return worker;
  }

  async completed(): Promise<number> {
    return (await this.store.summarizeRun(this.runId)).counts.completed;
  }

  /** Documents whose stored answer is not the one to their own request, or which have none. */
  async wrongAnswers(): Promise<string[]> {
    const wrong: string[] = [];
    let seen = 0;
    for (let afterLine = 0; ; ) {
      const rows = await this.store.readResults({
        ...{ runId: this.runId, only: 'all', afterLine, limit: 1_000, includeBody: false },
      });
      if (rows.length === 0) break;
      for (const { line, key, state, result } of rows) {
        seen += 1;
        if (state !== 'completed' || result?.outputJson !== JSON.stringify(answerTo(textOf(line))))
          wrong.push(key);
        afterLine = line;
      }
    }
    return seen === this.#options.documents ? wrong : [...wrong, `${seen} documents`];
  }

  /** Stored answers, and how many of them came by a call that was given up, as the database itself has them. */
  async answersByCall(): Promise<{ readonly ofCalls: number; readonly ofLostCalls: number } | undefined> {
    const [answers] = await this.#query<{ ofCalls: number; ofLostCalls: number }>(
      `SELECT count(*)::int AS "ofCalls", (count(*) FILTER (WHERE lost = 1))::int AS "ofLostCalls"
       FROM results JOIN calls USING (request_id)`,
    );
    return answers;
  }

  /** Lines of the documents whose calls are open in the ledger. */
  async openLinesOf({ pid }: FleetWorker): Promise<number[]> {
    const rows = await this.#query<{ line: string }>(
      `SELECT line FROM calls JOIN workers ON workers.id = worker_id
       JOIN call_tasks ON call_id = calls.id JOIN tasks ON tasks.id = task_id
       WHERE name = '${pid}' AND finished_at_ms IS NULL`,
    );
    return rows.map(({ line }) => Number(line));
  }

  /** Whether a call that is open in the ledger has been at the server. */
  async isCalling(worker: FleetWorker): Promise<boolean> {
    const lines = await this.openLinesOf(worker);
    const { callsByDocument } = await this.simulator.books();
    return lines.some((line) => {
      const { fingerprint } = simulatedAnswer({ messages: [{ role: 'user', content: textOf(line) }] });
      return callsByDocument[fingerprint] !== undefined;
    });
  }

  eventsOf(type: string): Record<string, unknown>[] {
    return this.workers.flatMap(({ events }) => events.filter((event) => event['type'] === type));
  }

  async #query<Row extends object>(sql: string): Promise<Row[]> {
    const { storeUrl: connectionString } = this.#options;
    const client = new pg.Client({ connectionString, options: `-c search_path=${this.#schemaName}` });
    await client.connect();
    try {
      return (await client.query<Row>(sql)).rows;
    } finally {
      await client.end();
    }
  }

  async remove(): Promise<void> {
    for (const worker of this.workers) worker.kill('SIGKILL');
    await Promise.all(this.workers.map(({ ended }) => ended));
    await this.simulator.stop();
    await this.store.close();
    this.#folder.remove();
  }
}

function textOf(line: number): string {
  return `Document number ${line} of a fleet.`;
}
