/** The walk of a newcomer: what README says to type is typed, each line in a folder with the files that it names. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runInProcess } from '../support/in-process.js';
import { postgresUrl } from '../support/postgres.js';
import { sampleJpeg, samplePdf, samplePng } from '../support/sample-images.js';
import { startService } from '../support/service.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

const README = readFileSync(join(import.meta.dirname, '..', '..', 'README.md'), 'utf8');
/** As they stand there, without the remark that some have behind them. */
const LINES = [...README.matchAll(/^(?: {4}|\$ )((?:\w+=\S+ |npm ci && )?(?:npx )?llm-batch .*)$/gm)]
  .map(([, line = '']) => line.replace(/ {2,}\S.*$/, '').trim())
  .filter((line) => !line.endsWith('--help'));

let workspace: Workspace;
let simulator: SimulatorHere;

beforeAll(async () => {
  simulator = await startSimulatorHere();
});
afterAll(() => simulator.stop());
beforeEach(() => {
  workspace = new Workspace();
  for (const folder of ['fixtures', 'photos', 'scans']) mkdirSync(workspace.path(folder));
  for (const name of ['reviews', 'comments', 'docs', 'fixtures/reviews']) {
    workspace.writeDocuments(`${name}.jsonl`, numberedDocuments(3));
  }
  workspace.writeDocuments('products.jsonl', [{ title: 'Cup', description: 'For tea.' }]);
  workspace.writeDocuments('photos.jsonl', [
    { id: 'a', name: 'Ann', photo: 'photos/cat.jpg' },
    { id: 'b', name: 'Bo', photo: ['photos/dog.png', 'scans/form.pdf'] },
  ]);
  workspace.write('photos/cat.jpg', sampleJpeg(8, 8));
  workspace.write('photos/dog.png', samplePng(8, 8));
  workspace.write('scans/form.pdf', samplePdf());
  const label = { type: 'object', properties: { label: { type: 'string' } }, required: ['label'] };
  workspace.write('sentiment.schema.json', JSON.stringify(label));
});
afterEach(() => workspace.remove());

/** Types a line; where it names a server, the simulator stands in. */
async function type(line: string) {
  const quoted = line.replace(/^npm ci && /, '').replace(/^\w+=\S+ /, '');
  const shown = execFileSync('sh', ['-c', `printf '%s\\0' ${quoted.replace(/ >.*$/, '')}`], {
    encoding: 'utf8',
  });
  const words = shown.split('\0').slice(0, -1);
  const at = words.indexOf('--base-url');
  if (at >= 0) words[at + 1] = simulator.url;
  const behind = words.slice(words.indexOf('llm-batch') + 1);
  const quick = line.includes('--remote') ? ['--poll-interval', '50ms'] : [];
  const [verb = '', ...rest] = behind;
  const environment = { OPENAI_API_KEY: 'sk-test', OPENAI_BASE_URL: simulator.url, TEAM_KEY: 'team' };
  if (verb === 'serve') {
    const service = await startService(workspace.folder, rest, { environment });
    return { exitCode: await service.stop(), stderr: service.stderr() };
  }
  const store = words.indexOf('--store');
  if (store >= 0) words.splice(store + 1, 1, await postgresUrl(), '--schema-name', `newcomer_${process.pid}`);
  const until = verb === 'worker' ? ['--idle-exit', '0s'] : [];
  return runInProcess([...words.slice(words.indexOf('llm-batch') + 1), ...quick, ...until], {
    folder: workspace.folder,
    environment,
  });
}

describe('README', () => {
  it('has lines to type', () => {
    expect(LINES.length).toBeGreaterThan(15);
  });

  it.each(LINES)('%s', async (line) => {
    const isLater = /llm-batch (resume|results)/.test(line);
    if (isLater) expect(await type('llm-batch run reviews.jsonl')).toMatchObject({ exitCode: 0 });
    const { exitCode, stderr } = await type(line);
    expect(exitCode, stderr).toBe(0);
  });
});
