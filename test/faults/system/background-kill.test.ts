/**
 * Kills the program for real at ten moments of one run of background responses: while they are created, asked for, stored
 * and removed. The simulator, a process of its own, is the witness.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { seededRandom } from '../../support/seeded-random.js';
import { type SimulatorProcess, startSimulatorProcess } from '../../support/simulator-process.js';
import { waitFor } from '../../support/wait-for.js';
import { numberedDocuments, Workspace } from '../../support/workspace.js';

const DOCUMENTS = 200;
const KILLS = 10;
const SEED = Number(process.env['KILL_SEED'] ?? 20_261);
/** A kill comes so long after its moment at most, so that it meets what follows as well. */
const LATEST_MS = 60;

let workspace: Workspace;
let simulator: SimulatorProcess;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorProcess({
    latencyMs: { min: 100, max: 500 },
    prices: { inputMicroUsdPerToken: 2, outputMicroUsdPerToken: 10 },
  });
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

const responses = async () => (await simulator.books()).remote.responses;

describe('a run of background responses that is killed ten times', () => {
  it('answers every document once, and creates none anew whose id was known', async () => {
    const random = seededRandom(SEED);
    workspace.writeDocuments('docs.jsonl', numberedDocuments(DOCUMENTS));
    const flags = ['--base-url', simulator.url, '--poll-interval', '40ms', '-o', 'out.jsonl'];
    const asked = ['--endpoint', 'responses', '--background', '--prompt', '{{text}}'];
    for (let kill = 0; kill < KILLS; kill += 1) {
      const created = (await responses()).length;
      const life = workspace.start(
        kill === 0 ? ['run', 'docs.jsonl', ...asked, ...flags] : ['resume', ...flags],
      );
      const until = created + 1 + Math.floor(random() * ((2 * (DOCUMENTS - created)) / (KILLS - kill) - 2));
      await waitFor(
        'enough creations',
        async () => (await responses()).length >= Math.min(until, DOCUMENTS - 1),
      );
      await new Promise((resolve) => setTimeout(resolve, random() * LATEST_MS));
      life.kill('SIGKILL');
      expect((await life.ended).signal, `killed before its end, KILL_SEED=${SEED}`).toBe('SIGKILL');
    }

    const last = await workspace.run(['resume', ...flags]);
    expect(last.exitCode, last.stderr).toBe(0);
    const ids = workspace.readLines('out.jsonl').map(({ id }) => id);
    expect(ids).toEqual(numberedDocuments(DOCUMENTS).map(({ id }) => id));

    const { stdout } = await workspace.run(['status', '--json']);
    const status = JSON.parse(stdout) as {
      readonly calls: { readonly made: number };
      readonly cost_usd: number;
      readonly in_doubt: { readonly calls: number };
      readonly background_responses: readonly object[];
    };
    const all = await responses();
    // What the program knew, it has removed; an id that was lost with a kill it could not.
    const known = all.filter(({ isDeleted }) => isDeleted);
    expect(new Set(known.map(({ document }) => document)).size, 'documents that were answered').toBe(
      DOCUMENTS,
    );
    expect(known, 'none created anew whose id was known').toHaveLength(DOCUMENTS);
    expect(all.length - known.length, 'repeats').toBeLessThanOrEqual(status.in_doubt.calls);
    expect(status.calls.made - status.in_doubt.calls).toBe(DOCUMENTS);
    expect(status.in_doubt.calls, 'open creations').toBeLessThanOrEqual(KILLS * 16);
    expect(status.cost_usd).toBeCloseTo(
      known.reduce((sum, { costUsd }) => sum + costUsd, 0),
      9,
    );
    expect(status.background_responses).toEqual([]);
  });
});
