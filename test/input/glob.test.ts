import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFiles, folderOfGlob, isGlob, matchesGlob } from '../../src/input/glob.js';

const FILES = [
  'a.md',
  'b.md',
  'b.txt',
  'ä.md',
  '.hidden.md',
  'a[1].md',
  'sub/c.md',
  'sub/deep/d.md',
  '.git/e.md',
  'other/c.md',
  'a.md.bak',
];

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'llm-batch-glob-'));
  for (const file of FILES) {
    mkdirSync(join(folder, dirname(file)), { recursive: true });
    writeFileSync(join(folder, file), '');
  }
  mkdirSync(join(folder, 'folder.md'));
  symlinkSync(join(folder, 'sub'), join(folder, 'linked'));
  symlinkSync(join(folder, 'b.md'), join(folder, 'link.md'));
  symlinkSync(join(folder, 'gone'), join(folder, 'broken.md'));
  symlinkSync('..', join(folder, 'sub', 'circle'));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

async function found(pattern: string): Promise<string[]> {
  return (await findFiles(join(folder, pattern))).map((path) => relative(folder, path));
}

describe('findFiles', () => {
  it.each([
    ['*.md', ['a.md', 'a[1].md', 'b.md', 'link.md', 'ä.md']],
    ['?.md', ['a.md', 'b.md', 'ä.md']],
    ['[ab].md', ['a.md', 'b.md']],
    ['[!a].md', ['b.md', 'ä.md']],
    ['[b-z].*', ['b.md', 'b.txt']],
    ['{b,a}.{txt,md}', ['a.md', 'b.md', 'b.txt']],
    ['{a,{b,c}}.md', ['a.md', 'b.md']],
    ['.*.md', ['.hidden.md']],
    ['*/c.md', ['linked/c.md', 'other/c.md', 'sub/c.md']],
    ['**/*.md', ['a.md', 'a[1].md', 'b.md', 'link.md', 'other/c.md', 'sub/c.md', 'sub/deep/d.md', 'ä.md']],
    ['sub/**', ['sub/c.md', 'sub/deep/d.md']],
    ['sub/**/d.md', ['sub/deep/d.md']],
    ['[z-a].md', []],
    ['nothing/*', []],
  ])('finds by %s what a shell finds, sorted', async (pattern, expected) => {
    expect(await found(pattern)).toEqual(expected);
  });
});

describe('matchesGlob', () => {
  it.each([
    ['/notes/*.md', '/notes/a.md', true],
    ['/notes/*.md', '/notes/sub/a.md', false],
    ['/notes/**/*.md', '/notes/a.md', true],
    ['/notes/**/*.md', '/notes/sub/deep/a.md', true],
    ['/notes/**/*.md', '/notes/.git/a.md', false],
    ['/notes/*', '/notes/.hidden', false],
    ['/n/{a,b}.md', '/n/b.md', true],
    ['/n/a.md', '/n/axmd', false],
  ])('%s and %s: %s', (pattern, path, expected) => {
    expect(matchesGlob(path, pattern)).toBe(expected);
  });
});

describe('a pattern', () => {
  it.each(['*.md', 'a?.txt', 'data[1].jsonl', '{a,b}.md'])('%s is one', (text) => {
    expect(isGlob(text)).toBe(true);
  });

  it.each(['reviews.jsonl', 'a{b}.md', 'a[].md', 'x,y.csv'])('%s is not', (text) => {
    expect(isGlob(text)).toBe(false);
  });

  it.each([
    ['/notes/*.md', '/notes'],
    ['/notes/sub/**/x/*.md', '/notes/sub'],
    ['/*', '/'],
    ['/notes/a.md', '/notes'],
  ])('%s lies in %s', (pattern, expected) => {
    expect(folderOfGlob(pattern)).toBe(expected);
  });
});
