/** A store as somebody may have made it: a run, not yet sent, whose settings say what the test wants. */
import { systemClock } from '../../src/core/clock.js';
import type { JsonObject } from '../../src/core/json.js';
import { openStore } from '../../src/store/open.js';
import { numberedDocuments, type Workspace } from './workspace.js';

export interface CraftedRun {
  readonly baseUrl?: string | null;
  readonly apiKeyEnv?: readonly string[];
  readonly pricesFile?: string | null;
  readonly imageFolder?: string;
  readonly promptTemplate?: string;
  readonly output?: string | null;
  readonly inputPath?: string;
  readonly outputPaths?: readonly string[];
  readonly simulator?: JsonObject | null;
  /** Puts what this program does not write into the settings. */
  readonly more?: JsonObject;
}

/** A run of two documents that are still to be sent. */
export async function craftStore(workspace: Workspace, crafted: CraftedRun): Promise<void> {
  const { baseUrl = null, apiKeyEnv = ['OPENAI_API_KEY'], pricesFile = null, output = null } = crafted;
  const { promptTemplate = null, imageFolder = workspace.folder } = crafted;
  const store = await openStore(workspace.storePath, { mode: 'write', clock: systemClock });
  const run = await store.createRun({
    name: 'docs',
    inputPath: crafted.inputPath ?? workspace.path('docs.jsonl'),
    simulated: false,
    createdAtMs: 0,
    settings: {
      request: {
        model: 'gpt-4o-mini',
        promptTemplate,
        systemTemplate: null,
        parameters: {},
        imageFolder,
        idField: null,
      },
      connection: { baseUrl, apiKeyEnv: [...apiKeyEnv], lanes: null },
      pacing: {
        concurrency: 4,
        rpm: null,
        tpm: null,
        rpd: null,
        maxAttempts: 2,
        timeoutMs: 5_000,
        maxWaitMs: 5_000,
        graceMs: 1_000,
        guard: true,
      },
      budget: { maxCostMicroUsd: null, maxTokensTotal: null, maxFailures: null },
      answers: { check: null, repair: false },
      sharing: { dedupe: false, reuse: false },
      pricesFile,
      simulator: crafted.simulator ?? null,
      output,
      ...crafted.more,
    },
  });
  await store.addTasks(
    run.id,
    numberedDocuments(2).map((document, index) => ({
      line: index + 1,
      key: document.id,
      occurrence: 0,
      requestHash: document.text,
      priority: 0,
      body: JSON.stringify(document),
      metadataJson: null,
    })),
  );
  await store.updateRun(run.id, { status: 'open', outputPaths: crafted.outputPaths ?? [] });
  await store.close();
}
