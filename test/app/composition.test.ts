/** What a run's lanes are made of: each has the limits, the share, the names, the key and the prices that are its own. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkConnection, connect } from '../../src/app/composition.js';
import type { CommandContext } from '../../src/app/context.js';
import { Interrupts } from '../../src/app/interrupts.js';
import { systemClock } from '../../src/core/clock.js';
import type { JsonObject } from '../../src/core/json.js';
import type { RunSettings } from '../../src/runs/run-settings.js';
import type { RunLanes } from '../../src/runs/work.js';
import { type Simulator, startSimulator } from '../../src/simulator/simulator.js';
import { temporaryFolder } from '../support/program.js';
import { runSettingsOf } from '../support/run-settings.js';
import { waitFor } from '../support/wait-for.js';

const KEYS = { KEY_A: 'sk-lane-a-0123456789abcdef', KEY_B: 'sk-lane-b-0123456789abcdef' };
const USAGE = { inputTokens: 1_000, outputTokens: 100, cachedTokens: 0, reasoningTokens: 0 };

let folder: ReturnType<typeof temporaryFolder>;
let simulator: Simulator;
let connection: RunLanes | null;

beforeEach(async () => {
  folder = temporaryFolder();
  connection = null;
  simulator = await startSimulator({}, { clock: systemClock });
});

afterEach(async () => {
  await connection?.close();
  await simulator.close();
  folder.remove();
});

function contextOf(environment: Readonly<Record<string, string>> = KEYS): CommandContext {
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    environment,
    takeSecret: (name) => environment[name],
    command: (sentence) => sentence,
    workingFolder: folder.path,
    processId: process.pid,
    hostName: 'here',
    hasThreads: false,
    clock: systemClock,
    random: () => 0.5,
    interrupts: new Interrupts(systemClock),
  };
}

/** @param flags as on the command line */
function settingsOf(flags: Record<string, unknown>, file: JsonObject = {}, simulate = false) {
  return runSettingsOf({ flags, file, simulate, folder: folder.path });
}

async function lanesOf(settings: RunSettings) {
  connection = await connect(settings, contextOf());
  return connection.lanes;
}

/** Two lanes as a configuration file has them, at this simulator. */
function twoLanes(): JsonObject {
  const limits = { rpm: 60, tpm: 9_000, rpd: 500 };
  const a = { name: 'a', apiKeyEnv: 'KEY_A', weight: 3, models: { small: 'small-v2' }, ...limits };
  return {
    lanes: [a, { name: 'b', apiKeyEnv: 'KEY_B' }].map((lane) => ({ ...lane, baseUrl: simulator.url })),
  };
}

/** One call, and what the server said. */
async function send(
  lane: RunLanes['lanes'][number],
  model = 'small',
  signal: AbortSignal = new AbortController().signal,
) {
  const bodyJson = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello.' }] });
  return lane.provider.send({ endpoint: 'chat', parts: 1, bodyJson }, { timeoutMs: 20_000, signal });
}

describe('a lane', () => {
  it('has its own share and limits, and those of the run where it has none', async () => {
    const lanes = await lanesOf(await settingsOf({ rpm: 10, tpm: 1_000, rpd: 100 }, twoLanes()));
    const limits = lanes.map(({ name, weight, limiter }) => {
      const { requestsPerMinute, tokensPerMinute, requestsPerDay } = limiter.snapshot(0);
      return [name, weight, requestsPerMinute, tokensPerMinute, requestsPerDay];
    });
    expect(limits).toEqual([
      ['a', 3, 60, 9_000, 500],
      ['b', 1, 10, 1_000, 100],
    ]);
  });

  it('sends under the name that its server has for the model, and with its own key', async () => {
    simulator.reconfigure({ models: ['small-v2'], keys: [{ key: KEYS.KEY_A }] });
    const [a, b] = await lanesOf(await settingsOf({}, twoLanes()));
    if (a === undefined || b === undefined) throw new Error('two lanes must be there');
    expect(await send(a)).toMatchObject({ ok: true });
    expect(await send(b)).toMatchObject({ ok: false, failure: { kind: 'auth' } });
    simulator.reconfigure({ keys: [{ key: KEYS.KEY_B }] });
    // A model that it has no other name for goes as it is.
    expect(await send(b)).toMatchObject({ ok: false, failure: { kind: 'not_found' } });
    expect(await send(b, 'small-v2')).toMatchObject({ ok: true });
  });

  it('lets as many calls be open as the run may have', async () => {
    simulator.reconfigure({ latencyMs: 600_000 });
    const [lane] = await lanesOf(await settingsOf({ baseUrl: simulator.url, concurrency: 12 }));
    if (lane === undefined) throw new Error('a lane must be there');
    const cuts = Array.from({ length: 12 }, () => new AbortController());
    const calls = cuts.map(({ signal }) => send(lane, 'small', signal));
    await waitFor('twelve open calls', () => simulator.books().openCalls === 12);
    for (const cut of cuts) cut.abort();
    expect(await Promise.all(calls)).toEqual(Array(12).fill({ ok: false, aborted: true }));
  });

  it('prices a call by the model that was asked for', async () => {
    const [lane] = await lanesOf(await settingsOf({ baseUrl: simulator.url }));
    expect(lane?.costOf('gpt-4o', { ...USAGE, answeredBy: 'gpt-4o-mini' })).toBe(3_500);
    expect(lane?.costOf('gpt-4o-mini', USAGE)).toBe(210);
    expect(lane?.costOf('a-model-that-nobody-knows', USAGE)).toBeNull();
    expect(lane?.mostOf('gpt-4o', 1_000, 100, null)).toBeGreaterThanOrEqual(3_500);
    expect(lane?.mostOf('a-model-that-nobody-knows', 1_000, 100, null)).toBeNull();
  });

  it('puts no price on an answer that a simulator made up', async () => {
    const [lane] = await lanesOf(await settingsOf({ baseUrl: simulator.url }));
    expect(lane?.costOf('gpt-4o', { ...USAGE, answeredBy: 'simulated/gpt-4o' })).toBeNull();
  });
});

describe('a rehearsal', () => {
  it('calls a simulator of its own without any key, and takes it down when it is over', async () => {
    const settings = await settingsOf({}, {}, true);
    const rehearsal = await connect(settings, contextOf());
    const [lane] = rehearsal.lanes;
    if (lane === undefined) throw new Error('a lane must be there');
    expect(await send(lane, 'gpt-4o')).toMatchObject({ ok: true });
    expect(simulator.books().calls).toBe(0);
    await rehearsal.close();
    expect(await send(lane, 'gpt-4o')).toMatchObject({ ok: false });
  });
});

describe('before anything is read', () => {
  it.each([
    ['KEY_MISSING', {}, {}],
    ['KEY_MISSING', { apiKeyEnv: ['KEY_A', 'KEY_B'] }, { KEY_A: KEYS.KEY_A }],
    ['KEY_NAME_INVALID', { apiKeyEnv: [KEYS.KEY_A] }, KEYS],
    ['BASE_URL_INVALID', { baseUrl: 'localhost:11434' }, KEYS],
    ['BASE_URL_CREDENTIALS', { baseUrl: 'http://me:secret@127.0.0.1/v1' }, KEYS],
    ['BASE_URL_CREDENTIALS', { baseUrl: 'http://127.0.0.1/v1?api_key=secret' }, KEYS],
  ])('%s is told for %j', async (code, flags, environment) => {
    const settings = await settingsOf(flags);
    const context = contextOf(environment as Record<string, string>);
    expect(() => checkConnection(settings, context)).toThrowError(expect.objectContaining({ code }));
  });

  it('a server of one’s own is asked without a key', async () => {
    const settings = await settingsOf({ baseUrl: simulator.url });
    expect(() => checkConnection(settings, contextOf({}))).not.toThrow();
  });
});
