/** Keeps the layers of docs/ARCHITECTURE.md: imports point downward, form no circle, and some words have one home. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { describe, expect, it } from 'vitest';

const SOURCE = join(import.meta.dirname, '..', 'src');

/** What each folder may import besides itself; `core` is open to all. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: [],
  config: [],
  limiter: [],
  input: [],
  documents: ['input'],
  pricing: [],
  store: [],
  provider: [],
  engine: ['store', 'provider', 'limiter', 'config', 'documents', 'pricing'],
  results: ['input'],
  runs: ['engine', 'results', 'store', 'provider', 'limiter', 'config', 'input', 'documents', 'pricing'],
  telemetry: [],
  ui: ['runs', 'pricing'],
  report: ['ui', 'runs', 'store', 'documents'],
  simulator: [],
};

const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.split(sep).join('/'))
  .sort();

function textOf(file: string): string {
  return readFileSync(join(SOURCE, file), 'utf8');
}

/** Code without comments, so that prose may name what code may not. */
function codeOf(file: string): string {
  return textOf(file)
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|[^:'"`])\/\/.*$/gm, '$1');
}

function importsOf(file: string): { target: string; typeOnly: boolean }[] {
  const found: { target: string; typeOnly: boolean }[] = [];
  const pattern = /(?:import|export)\s+(type\s+)?(?:[^'";]*?\sfrom\s+)?'(\.[^']+)'|import\('(\.[^']+)'\)/g;
  for (const match of codeOf(file).matchAll(pattern)) {
    const path = match[2] ?? match[3] ?? '';
    const target = relative(SOURCE, join(SOURCE, dirname(file), path))
      .split(sep)
      .join('/');
    found.push({ target: target.replace(/\.js$/, '.ts'), typeOnly: match[1] !== undefined });
  }
  return found;
}

function folderOf(file: string): string {
  return file.includes('/') ? (file.split('/')[0] ?? '') : file;
}

describe('the layers', () => {
  it('every folder has a place in the table', () => {
    const folders = new Set(files.map(folderOf));
    for (const composing of ['cli.ts', 'commands', 'app']) folders.delete(composing);
    expect([...folders].filter((folder) => !(folder in MAY_IMPORT))).toEqual([]);
  });

  it('imports point downward only', () => {
    const upward: string[] = [];
    for (const file of files) {
      const allowed = MAY_IMPORT[folderOf(file)];
      if (allowed === undefined) continue;
      for (const { target } of importsOf(file)) {
        const folder = folderOf(target);
        if (folder !== folderOf(file) && folder !== 'core' && !allowed.includes(folder)) {
          upward.push(`${file} imports ${target}`);
        }
      }
    }
    expect(upward).toEqual([]);
  });

  it('imports form no circle', () => {
    const graph = new Map(
      files.map((file) => [
        file,
        importsOf(file)
          .map(({ target }) => target)
          .filter((t) => files.includes(t)),
      ]),
    );
    const circles: string[] = [];
    const finished = new Set<string>();
    const visit = (file: string, path: string[]): void => {
      if (path.includes(file)) {
        circles.push([...path.slice(path.indexOf(file)), file].join(' → '));
        return;
      }
      if (finished.has(file)) return;
      for (const target of graph.get(file) ?? []) visit(target, [...path, file]);
      finished.add(file);
    };
    for (const file of files) visit(file, []);
    expect(circles).toEqual([]);
  });

  it('every relative import names a file that exists', () => {
    const missing = files.flatMap((file) =>
      importsOf(file)
        .filter(({ target }) => !files.includes(target))
        .map(({ target }) => `${file} imports ${target}`),
    );
    expect(missing).toEqual([]);
  });
});

describe('words with one home', () => {
  function usersOf(pattern: RegExp, except: (file: string) => boolean): string[] {
    return files.filter((file) => !except(file) && pattern.test(codeOf(file)));
  }

  it('time and chance are read in core/clock.ts alone', () => {
    const pattern =
      /\bDate\.now\(|\bnew Date\(\)|\bsetTimeout\(|\bsetInterval\(|\bMath\.random\(|\bperformance\.now\(/;
    expect(usersOf(pattern, (file) => file === 'core/clock.ts')).toEqual([]);
  });

  it('only cli.ts ends the process', () => {
    expect(usersOf(/process\.exit\(|process\.exitCode/, (file) => file === 'cli.ts')).toEqual([]);
  });

  it('only store/open.ts names a concrete store', () => {
    expect(
      usersOf(/from '[^']*\/sqlite\/|import\('[^']*\/sqlite\//, (file) => file.startsWith('store/')),
    ).toEqual([]);
    const source = 'input/sqlite.ts';
    const except = (file: string): boolean => file === source || file.startsWith('store/sqlite/');
    expect(usersOf(/better-sqlite3/, except)).toEqual([]);
  });

  it('only the composition names a concrete provider', () => {
    const composition = 'app/composition.ts';
    const except = (file: string): boolean => file === composition || file.startsWith('provider/openai/');
    expect(usersOf(/provider\/openai|from 'openai|from 'undici/, except)).toEqual([]);
  });

  it('the environment is read in cli.ts alone', () => {
    expect(usersOf(/process\.env/, (file) => file === 'cli.ts')).toEqual([]);
  });

  it('flags are named in commands and on pages for people alone: below them errors have codes and facts', () => {
    // `cli.ts` looks for two before a command line can be parsed; the report's style has CSS variables.
    const speaks = /^(cli\.ts|commands\/|ui\/|report\/|config\/settings\.ts)/;
    // Node's own.
    const others = ['--max-old-space-size'];
    const named = files
      .filter((file) => !speaks.test(file))
      .flatMap((file) =>
        codeOf(file)
          .split('\n')
          .map((line) => `${file}: ${line.trim()}`),
      )
      .filter(
        (line) => /(^|[^\w-])--[a-z]|[ (]-[oy]\b/.test(line) && !others.some((flag) => line.includes(flag)),
      );
    expect(named).toEqual([]);
  });

  it('no folder or file is named for a kind instead of a responsibility', () => {
    expect(
      files.filter((file) => /(^|\/)(utils?|helpers?|types|common|misc|lib)(\/|\.ts$)/.test(file)),
    ).toEqual([]);
  });
});
