/** Where the report goes, and what it may overwrite. */
import { existsSync } from 'node:fs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runInProcess } from '../support/in-process.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

let workspace: Workspace;

beforeEach(async () => {
  workspace = new Workspace();
  workspace.writeDocuments('docs.jsonl', numberedDocuments(2));
  await run('run', 'docs.jsonl', '--simulate');
});

afterEach(() => workspace.remove());

function run(...args: readonly string[]) {
  return runInProcess(args, { folder: workspace.folder });
}

it('is written beside the results and named for the run', async () => {
  const { exitCode, stdout, stderr } = await run('report');
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' });
  expect(stderr).toContain(workspace.path('docs-simulated.report.html'));
  expect(workspace.read('docs-simulated.report.html')).toMatch(/^<!doctype html>[\s\S]*<\/html>\n$/);
});

it('goes to standard output when asked to', async () => {
  const { stdout } = await run('report', '-o', '-');
  expect(stdout).toMatch(/^<!doctype html>/);
  expect(existsSync(workspace.path('docs-simulated.report.html'))).toBe(false);
});

it('takes the place of an earlier report of the same run', async () => {
  await run('report', '-o', 'page.html');
  expect(await run('report', '-o', 'page.html')).toMatchObject({ exitCode: 0 });
});

it('does not take the place of anything else without --force', async () => {
  workspace.write('mine.html', '<!doctype html>\n<p>mine</p>');
  const refused = await run('report', '-o', 'mine.html');
  expect(refused.exitCode).toBe(2);
  expect(refused.stderr).toContain('mine.html exists');
  expect(workspace.read('mine.html')).toContain('mine');
  expect(await run('report', '-o', 'mine.html', '--force')).toMatchObject({ exitCode: 0 });
  expect(workspace.read('mine.html')).not.toContain('mine</p>');
});

it("does not take the place of another run's report", async () => {
  await run('run', 'docs.jsonl', '--simulate', '--name', 'other');
  await run('report', 'other', '-o', 'page.html');
  expect(await run('report', 'docs-simulated', '-o', 'page.html')).toMatchObject({ exitCode: 2 });
});

it('refuses a run that is not there', async () => {
  expect(await run('report', 'nope')).toMatchObject({ exitCode: 2 });
});
