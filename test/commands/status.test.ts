/** What each lane has done is told apart, in words and as JSON. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runInProcess } from '../support/in-process.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

let workspace: Workspace;
let simulator: SimulatorHere;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorHere();
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

interface LaneJson {
  readonly lane: string;
  readonly calls: number;
  readonly failed: number;
  readonly throttled: number;
  readonly tokens: { readonly input: number; readonly output: number };
}

async function statusOf(
  keys: string,
): Promise<{ page: string; lanes: readonly LaneJson[]; json: StatusJson }> {
  const environment = { KEY_A: 'sk-a-1234567890abcdef', KEY_B: 'sk-b-1234567890abcdef' };
  const options = { folder: workspace.folder, environment };
  workspace.writeDocuments('docs.jsonl', [
    ...numberedDocuments(39),
    { id: 'again', text: '[[simulate:429-then-ok]] document' },
  ]);
  const flags = ['--base-url', simulator.url, '--api-key-env', keys];
  const run = await runInProcess(['run', 'docs.jsonl', ...flags], options);
  expect(run.exitCode, run.stderr).toBe(0);
  const page = (await runInProcess(['status'], options)).stdout;
  const json = JSON.parse((await runInProcess(['status', '--json'], options)).stdout) as StatusJson;
  return { page, json, lanes: json.lanes };
}

interface StatusJson {
  readonly calls: { readonly made: number; readonly failed: number };
  readonly tokens: LaneJson['tokens'];
  readonly lanes: readonly LaneJson[];
}

it('tells lanes apart whose sums are those of the run', async () => {
  const { page, json, lanes } = await statusOf('KEY_A,KEY_B');
  const host = new URL(simulator.url).host;
  expect(lanes.map(({ lane }) => lane)).toEqual([`KEY_A@${host}`, `KEY_B@${host}`]);
  const sum = (count: (lane: LaneJson) => number): number =>
    lanes.reduce((total, lane) => total + count(lane), 0);
  expect(sum((lane) => lane.calls)).toBe(json.calls.made);
  expect(json.calls.made).toBe(42);
  expect(sum((lane) => lane.failed)).toBe(json.calls.failed);
  expect(sum((lane) => lane.throttled)).toBe(2);
  expect(sum((lane) => lane.tokens.input)).toBe(json.tokens.input);
  expect(sum((lane) => lane.tokens.output)).toBe(json.tokens.output);
  expect(Math.min(...lanes.map((lane) => lane.calls))).toBeGreaterThan(0);
  const lines = page.split('\n').filter((line) => line.includes(`@${host}: `));
  expect(lines).toHaveLength(2);
  expect(lines[0]).toContain(`lanes      KEY_A@${host}: ${lanes[0]?.calls} calls`);
});

it('lanes of the config file that a flag switches off are told of, by run and by resume', async () => {
  workspace.write(
    'llm-batch.config.json',
    JSON.stringify({ lanes: [{ apiKeyEnv: 'KEY_A' }, { name: 'second', apiKeyEnv: 'KEY_B' }] }),
  );
  workspace.writeDocuments('docs.jsonl', numberedDocuments(2));
  const environment = { KEY_A: 'sk-a-1234567890abcdef', KEY_B: 'sk-b-1234567890abcdef' };
  const options = {
    folder: workspace.folder,
    environment: { ...environment, OPENAI_BASE_URL: simulator.url },
  };
  const ran = (...args: string[]) => runInProcess(args, options);
  expect((await ran('trust')).exitCode).toBe(0);
  expect((await ran('run', 'docs.jsonl')).stderr).not.toContain('not used');
  const unused = (flag: string) =>
    `the lanes of llm-batch.config.json (KEY_A, second) are not used: ${flag} takes their place\n`;
  expect((await ran('resume', '--base-url', simulator.url)).stderr).toContain(unused('--base-url'));
  expect((await ran('run', 'docs.jsonl', '--api-key-env', 'KEY_A')).stderr).toContain(
    unused('--api-key-env'),
  );
});

it('has no lines for a single lane, whose figures are those of the run', async () => {
  const { page, lanes } = await statusOf('KEY_A');
  expect(lanes).toMatchObject([{ calls: 42, failed: 2, throttled: 2 }]);
  expect(page).not.toContain('lanes');
});

it('made-up answers cost nothing, those that count as failures neither', async () => {
  workspace.writeDocuments('docs.jsonl', [
    { id: 'good', text: 'document' },
    { id: 'cut', text: '[[simulate:length]] document' },
    { id: 'refused', text: '[[simulate:refuse]] document' },
  ]);
  const options = { folder: workspace.folder };
  const run = await runInProcess(['run', 'docs.jsonl', '--simulate'], options);
  expect(run.exitCode).toBe(3);
  const { cost_usd, tokens } = JSON.parse((await runInProcess(['status', '--json'], options)).stdout);
  expect(tokens.output).toBeGreaterThan(0);
  expect(cost_usd).toBe(0);
});

it('names the files that are there, and not one that was never written', async () => {
  const options = { folder: workspace.folder };
  workspace.writeDocuments('docs.jsonl', [{ id: 'good', text: 'document' }]);
  await runInProcess(['run', 'docs.jsonl', '--simulate'], options);
  const { stdout } = await runInProcess(['status'], options);
  expect(stdout).toContain(workspace.path('docs.results.jsonl'));
  expect(stdout).not.toContain('docs.errors.jsonl');
});

it('gives a run that called nobody no speed, whatever others have sent within the minute', async () => {
  const options = { folder: workspace.folder };
  const run = (...flags: string[]) =>
    runInProcess(['run', 'docs.jsonl', '--base-url', simulator.url, ...flags], options);
  workspace.writeDocuments('docs.jsonl', [{ id: 'good', text: 'document' }]);
  await run('--name', 'first');
  expect((await runInProcess(['status', 'first'], options)).stdout).toContain('requests/min');
  await run('--name', 'second', '--reuse', '-o', 'second.jsonl');
  const { stdout } = await runInProcess(['status', 'second'], options);
  expect(stdout).toContain('1 answered by');
  expect(stdout).not.toContain('requests/min');
});
