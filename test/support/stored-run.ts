/** A run in a real store that is drained inside the test, on a clock that the test holds. */
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { Random } from '../../src/core/clock.js';
import type { EndpointName } from '../../src/core/endpoint-name.js';
import type { JsonObject } from '../../src/core/json.js';
import type { RunRecord } from '../../src/core/run.js';
import type { Lane } from '../../src/engine/lane.js';
import type { SendingWay } from '../../src/engine/sending-way.js';
import { createLimiter } from '../../src/limiter/limiter.js';
import type { Provider } from '../../src/provider/provider.js';
import { type ExecuteOptions, type ExecutionReport, executeRun } from '../../src/runs/execute-run.js';
import {
  type BudgetSettings,
  type PacingSettings,
  type RemoteSettings,
  type RunSettings,
  settingsToJson,
} from '../../src/runs/run-settings.js';
import { openStore } from '../../src/store/open.js';
import type { Store } from '../../src/store/store.js';
import type { FakeClock } from './fake-clock.js';
import { temporaryFolder } from './program.js';

const PACING: PacingSettings = {
  concurrency: 64,
  rpm: null,
  tpm: null,
  rpd: null,
  connections: null,
  connectTimeoutMs: 10_000,
  headersTimeoutMs: null,
  bodyTimeoutMs: null,
  keepAliveMs: 4_000,
  groupUrl: null,
  groupMin: 10,
  groupMax: 100,
  targetLatencyMs: 5_000,
  groupWaitMs: 100,
  maxAttempts: 5,
  timeoutMs: 300_000,
  maxWaitMs: 24 * 3_600_000,
  graceMs: 30_000,
  guard: true,
};

const NOT_REMOTE: RemoteSettings = {
  remote: false,
  remoteMax: 10,
  background: false,
  keepRemote: false,
  pollIntervalMs: null,
  finishDirectByMs: null,
};

export function plainRunSettings(pacing: Partial<PacingSettings> = {}): RunSettings {
  return {
    request: {
      model: null,
      promptTemplate: null,
      systemTemplate: null,
      parameters: {},
      endpoint: null,
      idField: null,
    },
    connection: { baseUrl: null, apiKeyEnv: ['OPENAI_API_KEY'], lanes: null },
    pacing: { ...PACING, ...pacing },
    budget: { maxCostMicroUsd: null, maxTokensTotal: null, maxFailures: null },
    answers: { check: null, repair: false },
    remote: NOT_REMOTE,
    sharing: { dedupe: false, reuse: false },
    pricesFile: null,
    simulator: null,
    output: null,
  };
}

export class StoredRun {
  readonly store: Store;
  readonly run: RunRecord;
  readonly #clock: FakeClock;
  readonly #folder: ReturnType<typeof temporaryFolder>;
  readonly #settings: RunSettings;

  private constructor(
    store: Store,
    run: RunRecord,
    clock: FakeClock,
    folder: ReturnType<typeof temporaryFolder>,
    settings: RunSettings,
  ) {
    this.store = store;
    this.run = run;
    this.#clock = clock;
    this.#folder = folder;
    this.#settings = settings;
  }

  get storePath(): string {
    return join(this.#folder.path, 'llm-batch.db');
  }

  get batchFolder(): string {
    return join(this.#folder.path, 'batches');
  }

  get salvagePath(): string {
    return join(this.#folder.path, 'salvage.jsonl');
  }

  /** A run of these texts, imported and ready to be drained. */
  static async of(
    texts: readonly string[],
    pacing: Partial<PacingSettings>,
    clock: FakeClock,
    budget: BudgetSettings = { maxCostMicroUsd: null, maxTokensTotal: null, maxFailures: null },
    parameters: JsonObject = {},
    endpoint: EndpointName | null = null,
    remote: Partial<RemoteSettings> = {},
  ): Promise<StoredRun> {
    const folder = temporaryFolder();
    const store = await openStore(join(folder.path, 'llm-batch.db'), { mode: 'write', clock });
    const plain = plainRunSettings(pacing);
    const settings: RunSettings = {
      ...plain,
      request: { ...plain.request, parameters, endpoint },
      budget,
      remote: { ...NOT_REMOTE, ...remote },
    };
    const created = await store.createRun({
      name: 'docs',
      inputPath: join(folder.path, 'docs.jsonl'),
      simulated: false,
      settings: settingsToJson(settings, store),
      createdAtMs: clock.now(),
    });
    await store.addTasks(
      created.id,
      texts.map((text, index) => ({
        line: index + 1,
        key: `doc-${index + 1}`,
        occurrence: 0,
        requestHash: text,
        priority: 0,
        body: JSON.stringify({ id: `doc-${index + 1}`, text }),
        metadataJson: null,
      })),
    );
    const run = await store.updateRun(created.id, { status: 'open' });
    return new StoredRun(store, run, clock, folder, settings);
  }

  /** Drains it with one lane, as a process that has just started would. */
  async execute(
    provider: Provider,
    random: Random,
    onDrain: (drain: SendingWay) => void = () => undefined,
    changes: Partial<ExecuteOptions> = {},
  ): Promise<ExecutionReport> {
    const { pacing } = this.#settings;
    const lane: Lane = {
      name: 'lane',
      weight: 1,
      costOf: () => null,
      mostOf: () => null,
      provider,
      limiter: createLimiter({ requestsPerMinute: pacing.rpm, tokensPerMinute: pacing.tpm, random }),
    };
    return this.executeOver([lane], random, onDrain, changes);
  }

  /** As a process that takes the drain lock does: whoever was at work before is dead. */
  #startAnew(): void {
    const database = new Database(this.storePath);
    database.exec('UPDATE workers SET lease_until_ms = 0');
    database.close();
  }

  /** @param changes what this drain does otherwise, e.g. a store that fails */
  async executeOver(
    lanes: readonly Lane[],
    random: Random,
    onDrain: (drain: SendingWay) => void = () => undefined,
    changes: Partial<ExecuteOptions> = {},
  ): Promise<ExecutionReport> {
    this.#startAnew();
    const work = executeRun({
      store: this.store,
      run: this.run,
      lanes,
      mostConnections: Number.POSITIVE_INFINITY,
      prices: { source: 'test', date: null },
      clock: this.#clock,
      random,
      workerId: 'test',
      salvagePath: this.salvagePath,
      batchFolder: this.batchFolder,
      stop: { count: 0, subscribe: () => () => undefined },
      tell: () => undefined,
      onAnswers: async () => undefined,
      onReady: async (drain) => onDrain(drain),
      ...changes,
    });
    return this.#clock.runUntil(work);
  }

  async remove(): Promise<void> {
    await this.store.close();
    this.#folder.remove();
  }
}
