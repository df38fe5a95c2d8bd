/** Requests that share calls at an address for that: whatever becomes of a call, each document gets its own answer. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SimulatorOptions } from '../../src/simulator/options.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

type Line = Record<string, unknown>;

let workspace: Workspace;
let simulator: SimulatorHere;

beforeEach(() => {
  workspace = new Workspace();
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

async function run(name: string, documents: readonly object[], ...flags: string[]) {
  workspace.writeDocuments('docs.jsonl', documents);
  const places = ['--base-url', simulator.url, '--quiet', '--name', name];
  return workspace.run(['run', 'docs.jsonl', ...places, ...flags]);
}

const simulating = async (options: SimulatorOptions): Promise<void> => {
  simulator = await startSimulatorHere({ outputTokens: { min: 3, max: 30 }, ...options });
};

const GROUPED = ['--group-url', '/batch', '--group-min', '25'];

/** But for what differs from call to call. */
function lines(name: string): Line[] {
  return workspace.readLines<Line>(`docs.${name}.results.jsonl`).map((line) => {
    const {
      latency_ms: _latency,
      request_id: _request,
      completed_at: _completed,
      cost_usd: _cost,
      ...same
    } = line;
    return same;
  });
}

describe('chat requests that share calls', () => {
  it.each([
    ['missing-index', 'bad_output'],
    ['doubled-index', 'bad_output'],
    ['item-error', 'invalid_request'],
    ['length', 'truncated'],
  ])('with %s, fails the one document that has no answer, and no other', async (fault, kind) => {
    await simulating({});
    const documents = numberedDocuments(40);
    const bad = { id: 'bad', text: `Of no use. [[simulate:${fault}]]` };
    const end = await run('one', [bad, ...documents], ...GROUPED);
    expect(end.exitCode, end.stderr).toBe(3);
    expect(lines('one').map(({ id }) => id)).toEqual(documents.map(({ id }) => id));
    expect(workspace.readLines('docs.one.errors.jsonl')).toMatchObject([{ id: 'bad', error: { kind } }]);
  });

  it('are those of one model; answers may come in any order', async () => {
    await simulating({ errorRate: { shuffled: 1 } });
    const documents = numberedDocuments(60).map(({ id, text }, index) => ({
      custom_id: id,
      body: { model: `m${index % 3}`, messages: [{ role: 'user', content: text }], temperature: index / 100 },
    }));
    const together = await run('together', documents, ...GROUPED);
    expect(together.exitCode, together.stderr).toBe(0);
    expect((await simulator.books()).calls).toBe(3);
    const alone = await run('alone', documents);
    expect(alone.exitCode, alone.stderr).toBe(0);
    expect(lines('together')).toEqual(lines('alone'));
  });
});
