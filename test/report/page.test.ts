/** What the page says, read as text; how it looks and behaves is in browser.test.ts. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FAILURE_KINDS } from '../../src/core/failure.js';
import { FAILURE_ADVICE } from '../../src/ui/failure-advice.js';
import { runInProcess } from '../support/in-process.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';
import { makeReportRun } from './report-run.js';

let workspace: Workspace;

beforeAll(() => {
  workspace = new Workspace();
});

afterAll(() => workspace.remove());

async function pageOf(storePath: string): Promise<string> {
  const { stdout } = await runInProcess(['report', '-o', '-', '--db', storePath], {
    folder: workspace.folder,
  });
  return stdout;
}

describe('the page of a run with every kind of failure', () => {
  let page: string;

  beforeAll(async () => {
    await makeReportRun(workspace.storePath, workspace.path('reviews.jsonl'));
    page = await pageOf(workspace.storePath);
  });

  it('shows each kind with its advice', () => {
    for (const kind of FAILURE_KINDS) {
      expect(page).toContain(`<span>${kind}</span>`);
      expect(page).toContain(FAILURE_ADVICE[kind].advice);
    }
  });

  it('says why the run stopped', () => {
    expect(page).toContain('<strong>Stopped.</strong>');
  });

  it('has a sentence and a table for each chart', () => {
    const figures = page.match(/<figure[\s\S]*?<\/figure>/g) ?? [];
    expect(page).toContain('<dt>Cost</dt>');
    expect(page).not.toContain('Simulated.');
    expect(figures).toHaveLength(6);
    for (const figure of figures) {
      expect(figure).toMatch(/role="img" tabindex="0" aria-label="[^"]{20,}"/);
      expect(figure).toMatch(/<details>[\s\S]*<tbody>[\s\S]*<td>/);
    }
  });

  it('compares with the limit of all lanes, where there is one that is near', () => {
    expect(page).toContain('At most 60 requests in any 60 seconds, 50% of the limit of 120.');
    expect(page).toMatch(/of the limit of 2\.0M, which is above this chart/);
  });

  it('says beside the money what it was priced by', () => {
    expect(page).toMatch(
      /<dt>Cost<\/dt>.*every call has a known price; up to [^<]* more for \d+ calls whose answers do not say what they used; prices: [^<]* of 2026-11-01<\/dd>/,
    );
  });

  it('tells the lanes apart', () => {
    expect(page).toContain('<h2 id="lanes">Lanes</h2>');
    expect(page).toMatch(/<th scope="row">second<\/th>\s*<td>164<\/td>/);
  });

  it('refers to nothing outside itself', () => {
    expect(page).not.toMatch(/\b(src|href)="|url\(|@import/);
  });
});

describe('the page of a rehearsal', () => {
  it('says so, and tells no cost', async () => {
    const db = workspace.path('rehearsal.db');
    await makeReportRun(db, workspace.path('reviews.jsonl'), true);
    const page = await pageOf(db);
    expect(page).toContain('<strong>Simulated.</strong>');
    expect(page).not.toContain('<dt>Cost</dt>');
    expect(page.match(/<figure/g)).toHaveLength(5);
  });
});

describe('the page of a run that has called nobody', () => {
  it('has no chart and says so', async () => {
    workspace.writeDocuments('new.jsonl', numberedDocuments(2));
    const db = workspace.path('new.db');
    const stopped = await runInProcess(
      ['run', 'new.jsonl', '--db', db, '--simulate', '--max-tokens-total', '1'],
      {
        folder: workspace.folder,
      },
    );
    expect(stopped.exitCode).toBe(4);
    const page = await pageOf(db);
    expect(page).toContain('No call has been made yet.');
    expect(page).not.toContain('<figure');
    expect(page).toContain('No document has failed.');
  });
});
