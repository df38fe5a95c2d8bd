import {
  appendFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { ResultRow } from '../../src/core/result-row.js';
import type { WrittenFile } from '../../src/core/run.js';
import { outputPathsFor } from '../../src/results/output-paths.js';
import { checkRunFiles, type RunFileOwnership, writeRunFiles } from '../../src/results/run-files.js';
import { completedRow, failedRow, pagesOf, temporaryFolder } from './rows.js';

function filesIn(
  folder: string,
  change: Partial<RunFileOwnership> = {},
): RunFileOwnership & { results: string; errors: string } {
  const paths = outputPathsFor('reviews.jsonl', { workingDirectory: folder });
  return {
    paths,
    ownFiles: [],
    force: false,
    results: paths.results ?? '',
    errors: paths.errors,
    ...change,
  };
}

/** What a run has noted of its files. */
let noted: WrittenFile[];

beforeEach(() => {
  noted = [];
});

function write(files: RunFileOwnership, rows: readonly ResultRow[]): ReturnType<typeof writeRunFiles> {
  return writeRunFiles({
    ...files,
    readPage: pagesOf(rows, 2),
    onComplete: async (file) => void noted.push(file),
  });
}

function linesOf(path: string): number[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line).line);
}

describe('the files of a run', () => {
  it('hold completed and failed documents apart, each in input order', async () => {
    const folder = temporaryFolder();
    const files = filesIn(folder);
    const rows = [completedRow(1), failedRow(2), completedRow(3), failedRow(4), completedRow(9)];
    expect(await write(files, rows)).toEqual({
      completed: 3,
      failed: 2,
      resultsPath: join(folder, 'reviews.results.jsonl'),
      errorsPath: join(folder, 'reviews.errors.jsonl'),
    });
    expect(linesOf(files.results)).toEqual([1, 3, 9]);
    expect(linesOf(files.errors)).toEqual([2, 4]);
  });

  it('are the results alone when nothing failed', async () => {
    const folder = temporaryFolder();
    expect(await write(filesIn(folder), [completedRow(1)])).toMatchObject({ errorsPath: null });
    expect(readdirSync(folder)).toEqual(['reviews.results.jsonl']);
  });

  it('lose an errors file of ours when nothing is failed any more', async () => {
    const files = filesIn(temporaryFolder());
    await write(files, [completedRow(1), failedRow(2)]);
    await write({ ...files, ownFiles: noted }, [completedRow(1), completedRow(2)]);
    expect(existsSync(files.errors)).toBe(false);
    expect(linesOf(files.results)).toEqual([1, 2]);
  });

  it('never lose an errors file that somebody else wrote', async () => {
    const files = filesIn(temporaryFolder());
    writeFileSync(files.errors, 'notes');
    await write({ ...files, force: true }, [completedRow(1)]);
    expect(readFileSync(files.errors, 'utf8')).toBe('notes');
  });

  it('are not made while nothing is settled', async () => {
    const folder = temporaryFolder();
    expect(await write(filesIn(folder), [])).toEqual({
      completed: 0,
      failed: 0,
      resultsPath: null,
      errorsPath: null,
    });
    expect(readdirSync(folder)).toEqual([]);
  });

  it('are emptied when their answers are gone', async () => {
    const files = filesIn(temporaryFolder());
    await write(files, [completedRow(1)]);
    await write({ ...files, ownFiles: noted }, []);
    expect(readFileSync(files.results, 'utf8')).toBe('');
  });

  it('are refused, and nothing is left half-written, where a foreign file stands', async () => {
    const folder = temporaryFolder();
    const files = filesIn(folder);
    writeFileSync(files.errors, 'notes');
    await expect(write(files, [completedRow(1), failedRow(2)])).rejects.toMatchObject({
      code: 'OUTPUT_EXISTS',
    });
    expect(readdirSync(folder)).toEqual(['reviews.errors.jsonl']);
    expect(readFileSync(files.errors, 'utf8')).toBe('notes');
  });

  it('replace a foreign file with --force', async () => {
    const files = filesIn(temporaryFolder(), { force: true });
    writeFileSync(files.results, 'old');
    await write(files, [completedRow(1)]);
    expect(linesOf(files.results)).toEqual([1]);
  });

  it.each([
    ['written to', (path: string) => appendFileSync(path, 'a note')],
    ['written over with as many bytes', (path: string) => writeFileSync(path, otherText(path))],
    [
      'replaced',
      (path: string) => {
        writeFileSync(`${path}.new`, otherText(path));
        renameSync(`${path}.new`, path);
        utimesSync(path, 1_000, 1_000);
      },
    ],
  ])('are not replaced once somebody has %s them', async (_, change) => {
    const files = filesIn(temporaryFolder());
    await write(files, [completedRow(1), failedRow(2)]);
    // Long ago, so that what comes now has another time.
    for (const path of [files.results, files.errors]) utimesSync(path, 1_000, 1_000);
    noted = noted.map((file) => ({ ...file, modifiedAtMs: 1_000_000 }));
    await checkRunFiles({ ...files, ownFiles: noted }, '-');
    for (const which of ['results', 'errors'] as const) {
      change(files[which]);
      const before = readFileSync(files[which], 'utf8');
      const again = { ...files, ownFiles: noted };
      await expect(checkRunFiles(again, '-')).rejects.toMatchObject({ code: 'OUTPUT_EXISTS' });
      const rows = which === 'results' ? [completedRow(1)] : [failedRow(2)];
      await expect(write(again, rows)).rejects.toMatchObject({ code: 'OUTPUT_EXISTS' });
      expect(readFileSync(files[which], 'utf8')).toBe(before);
    }
  });

  it('are replaced where a copy of the very same content has come in their place', async () => {
    const files = filesIn(temporaryFolder());
    await write(files, [completedRow(1)]);
    writeFileSync(`${files.results}.new`, readFileSync(files.results));
    renameSync(`${files.results}.new`, files.results);
    utimesSync(files.results, 1_000, 1_000);
    await write({ ...files, ownFiles: noted }, [completedRow(1), completedRow(2)]);
    expect(linesOf(files.results)).toEqual([1, 2]);
  });

  it('are not replaced where somebody came in between', async () => {
    const files = filesIn(temporaryFolder());
    await write(files, [completedRow(1)]);
    const late = writeRunFiles({
      ...files,
      ownFiles: noted,
      readPage: pagesOf([completedRow(1)], 2),
      onComplete: async () => appendFileSync(files.results, 'a note'),
    });
    await expect(late).rejects.toMatchObject({ code: 'OUTPUT_EXISTS' });
    expect(readFileSync(files.results, 'utf8')).toContain('a note');
  });

  it('are the errors alone when answers go to standard output', async () => {
    const folder = temporaryFolder();
    const paths = outputPathsFor('reviews.jsonl', { workingDirectory: folder, output: '-' });
    const written = await write({ paths, ownFiles: [], force: false }, [completedRow(1), failedRow(2)]);
    expect(written).toMatchObject({ completed: 1, failed: 1, resultsPath: null, errorsPath: paths.errors });
    expect(readdirSync(folder)).toEqual(['reviews.errors.jsonl']);
  });
});

describe('the check before a run', () => {
  it('passes where nothing stands, or only files of the run', async () => {
    const folder = temporaryFolder();
    const files = filesIn(folder);
    await checkRunFiles(files, join(folder, 'reviews.jsonl'));
    await write(files, [completedRow(1), failedRow(2)]);
    await checkRunFiles({ ...files, ownFiles: noted }, join(folder, 'reviews.jsonl'));
  });

  it.each(['results', 'errors'] as const)('refuses a foreign %s file unless forced', async (which) => {
    const folder = temporaryFolder();
    const files = filesIn(folder);
    writeFileSync(files[which], '');
    const input = join(folder, 'reviews.jsonl');
    await expect(checkRunFiles(files, input)).rejects.toMatchObject({ code: 'OUTPUT_EXISTS', exitCode: 2 });
    await checkRunFiles({ ...files, force: true }, input);
  });

  it('refuses the input under another name, even with --force', async () => {
    const folder = temporaryFolder();
    const files = filesIn(folder, { force: true });
    const input = join(folder, 'reviews.jsonl');
    writeFileSync(input, '{}\n');
    linkSync(input, files.results);
    await expect(checkRunFiles(files, input)).rejects.toMatchObject({ code: 'OUTPUT_IS_INPUT', exitCode: 2 });
  });

  it('refuses a folder where a file has to go', async () => {
    const folder = temporaryFolder();
    const files = filesIn(folder);
    mkdirSync(files.errors);
    await expect(checkRunFiles(files, '-')).rejects.toMatchObject({ code: 'OUTPUT_PATH', exitCode: 2 });
  });
});

/** As long as what is there. */
function otherText(path: string): string {
  return readFileSync(path, 'utf8').toUpperCase();
}
