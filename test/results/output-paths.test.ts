import { describe, expect, it } from 'vitest';
import { isStandardOutput, joinedPathFor, outputPathsFor } from '../../src/results/output-paths.js';

const here = { workingDirectory: '/home/ada' };

describe('the paths of a run', () => {
  it.each([
    ['reviews.jsonl', '/home/ada/reviews'],
    ['reviews.jsonl.gz', '/home/ada/reviews'],
    ['data/reviews.csv', '/home/ada/data/reviews'],
    ['/srv/reviews.TSV.gz', '/srv/reviews'],
    ['reviews', '/home/ada/reviews'],
    ['reviews.2026', '/home/ada/reviews.2026'],
    ['.jsonl', '/home/ada/.jsonl'],
    ['-', '/home/ada/stdin'],
    ['reviews.parquet', '/home/ada/reviews'],
    ['letter.md', '/home/ada/letter'],
    ['/home/ada/notes/*.md', '/home/ada/notes/notes'],
    ['/home/ada/notes/**/*.txt', '/home/ada/notes/notes'],
    ['/*.md', '/documents'],
    ['/home/ada/data[1].csv', '/home/ada/data[1]'],
    ['/dev/fd/63', '/home/ada/63'],
  ])('for %s begin with %s', (input, stem) => {
    expect(outputPathsFor(input, here)).toMatchObject({
      results: `${stem}.results.jsonl`,
      errors: `${stem}.errors.jsonl`,
      rejects: `${stem}.rejects.jsonl`,
    });
  });

  it('put the errors beside -o, the rejects beside the input', () => {
    expect(outputPathsFor('in/reviews.jsonl', { ...here, output: 'out/answers.jsonl' })).toMatchObject({
      results: '/home/ada/out/answers.jsonl',
      errors: '/home/ada/out/answers.errors.jsonl',
      rejects: '/home/ada/in/reviews.rejects.jsonl',
    });
    expect(outputPathsFor('a.jsonl', { ...here, output: 'b.results.jsonl' }).errors).toBe(
      '/home/ada/b.errors.jsonl',
    );
  });

  it('have no results file when answers go to standard output', () => {
    for (const output of ['-', '/dev/stdout', '/dev/fd/1']) {
      expect(isStandardOutput(output)).toBe(true);
      expect(outputPathsFor('a.jsonl', { ...here, output })).toMatchObject({
        results: null,
        errors: '/home/ada/a.errors.jsonl',
      });
    }
  });

  it('never make an errors file in /dev', () => {
    expect(outputPathsFor('a.jsonl', { ...here, output: '/dev/null' })).toMatchObject({
      results: '/dev/null',
      errors: '/home/ada/a.errors.jsonl',
    });
  });

  it('carry the format in the name', () => {
    expect(outputPathsFor('a.jsonl', { ...here, format: 'csv' }).results).toBe('/home/ada/a.results.csv');
    expect(outputPathsFor('a.jsonl', { ...here, format: 'openai' }).results).toBe(
      '/home/ada/a.results.openai.jsonl',
    );
  });

  it('are refused where the results would be read as one of several inputs', () => {
    for (const output of ['notes/out.md', 'notes/sub/../out.md']) {
      expect(() => outputPathsFor('/home/ada/notes/*.md', { ...here, output })).toThrow(
        expect.objectContaining({
          code: 'OUTPUT_IS_INPUT',
          message: `${output} would be one of the inputs, /home/ada/notes/*.md.`,
          facts: { isOneOfMany: true },
        }),
      );
    }
    expect(outputPathsFor('/home/ada/notes/*', { ...here, output: 'notes/a.results.jsonl' }).results).toBe(
      '/home/ada/notes/a.results.jsonl',
    );
  });

  it('are refused where the results would overwrite the input', () => {
    expect(() => outputPathsFor('./a.jsonl', { ...here, output: '/home/ada/a.jsonl' })).toThrow(
      expect.objectContaining({ code: 'OUTPUT_IS_INPUT', exitCode: 2 }),
    );
  });

  it('are refused where Parquet would be compressed once more', () => {
    for (const output of [{ output: 'b.parquet.gz' }, { output: 'b.gz', format: 'parquet' as const }]) {
      expect(() => outputPathsFor('a.jsonl', { ...here, ...output })).toThrow(
        expect.objectContaining({ code: 'OUTPUT_COMPRESSED', exitCode: 2 }),
      );
    }
  });

  it('carry the name that a run was given, unless -o says where', () => {
    const named = { ...here, runName: 'v2/é' };
    expect(outputPathsFor('in/a.csv', named)).toMatchObject({
      results: '/home/ada/in/a.v2_é.results.jsonl',
      errors: '/home/ada/in/a.v2_é.errors.jsonl',
      rejects: '/home/ada/in/a.v2_é.rejects.jsonl',
    });
    expect(outputPathsFor('a.jsonl', { ...named, output: 'b.jsonl' })).toMatchObject({
      results: '/home/ada/b.jsonl',
      errors: '/home/ada/b.errors.jsonl',
    });
    expect(joinedPathFor('a.csv', 'csv', named)).toBe('/home/ada/a.v2_é.joined.csv');
  });
});
