/** Workers in processes of their own over one PostgreSQL and one simulator, with what became of each document. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { systemClock } from '../../src/core/clock.js';
import { settingsToJson } from '../../src/runs/run-settings.js';
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

  eventsOf(type: string): Record<string, unknown>[] {
    return this.workers.flatMap(({ events }) => events.filter((event) => event['type'] === type));
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
