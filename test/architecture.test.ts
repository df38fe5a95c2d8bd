/** Keeps the layers of docs/ARCHITECTURE.md: imports point downward, form no circle, and some words have one home. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { describe, expect, it } from 'vitest';

const SOURCE = join(import.meta.dirname, '..', 'src');

/** What each folder imports besides itself and `core`, which is open to all. An arrow that nobody needs any more goes. */
const IMPORTS: Readonly<Record<string, readonly string[]>> = {
  core: [],
  config: [],
  limiter: [],
  input: [],
  endpoints: [],
  documents: ['endpoints', 'input'],
  pricing: ['endpoints'],
  store: ['limiter'],
  provider: ['endpoints'],
  engine: ['endpoints', 'input', 'limiter', 'pricing', 'provider', 'store'],
  results: ['endpoints', 'input'],
  runs: [
    'config',
    'documents',
    'endpoints',
    'engine',
    'input',
    'limiter',
    'pricing',
    'provider',
    'results',
    'store',
  ],
  telemetry: [],
  ui: ['pricing', 'runs'],
  report: ['documents', 'runs', 'store', 'ui'],
  simulator: [],
  client: [],
  server: ['documents', 'endpoints', 'engine', 'input', 'report', 'results', 'runs', 'store'],
  app: [
    'config',
    'documents',
    'endpoints',
    'engine',
    'limiter',
    'pricing',
    'provider',
    'results',
    'runs',
    'server',
    'simulator',
    'store',
    'telemetry',
    'ui',
  ],
  commands: [
    'app',
    'client',
    'config',
    'documents',
    'endpoints',
    'input',
    'report',
    'results',
    'runs',
    'simulator',
    'store',
    'ui',
  ],
  'cli.ts': ['app', 'commands', 'results', 'ui'],
};

/** Names that two files or types have for good, and why. */
const MEANT_TWICE: Readonly<Record<string, string>> = {
  'store.ts': 'the port, and the backend that fills it',
  'maintenance.ts': 'the same',
  'run.ts': 'the noun, and the verb that starts one',
};

/** Names that mean two things and are to be told apart. A list that only ever gets shorter. */
const STILL_TWICE: readonly string[] = [
  'answer.ts',
  'attachment.ts',
  'call.ts',
  'errors.ts',
  'results.ts',
  'timeline.ts',
  'tokens.ts',
  'usage.ts',
];

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
  const arrows = new Map<string, string[]>();
  for (const file of files) {
    for (const { target } of importsOf(file)) {
      const [from, to] = [folderOf(file), folderOf(target)];
      if (from === to || to === 'core') continue;
      const arrow = `${from} → ${to}`;
      arrows.set(arrow, [...(arrows.get(arrow) ?? []), `${file} imports ${target}`]);
    }
  }

  it('every folder has a place in the table', () => {
    expect([...new Set(files.map(folderOf))].filter((folder) => !(folder in IMPORTS))).toEqual([]);
  });

  it('folders import what the table says', () => {
    const isMeant = (arrow: string): boolean => {
      const [from = '', to = ''] = arrow.split(' → ');
      return IMPORTS[from]?.includes(to) ?? false;
    };
    expect([...arrows].flatMap(([arrow, imports]) => (isMeant(arrow) ? [] : imports))).toEqual([]);
  });

  it('every arrow of the table is used', () => {
    const allowed = Object.entries(IMPORTS).flatMap(([from, targets]) =>
      targets.map((to) => `${from} → ${to}`),
    );
    expect(allowed.filter((arrow) => !arrows.has(arrow))).toEqual([]);
  });

  it('the table has no way back up: its folders stand in an order in which each imports earlier ones alone', () => {
    const order = Object.keys(IMPORTS);
    const backwards = Object.entries(IMPORTS).flatMap(([from, targets]) =>
      targets.filter((to) => order.indexOf(to) >= order.indexOf(from)).map((to) => `${from} → ${to}`),
    );
    expect(backwards).toEqual([]);
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
      // A socket's own limit is no timer of ours.
      /\bDate\.now\(|\bnew Date\(\)|(?<!\bsocket\.)\bset(?:Timeout|Interval|Immediate)\(|timers\/promises|\bMath\.random\(|\bperformance\.now\(|\bhrtime\b/;
    // The one is the program's clock, the other runs in a browser.
    const mayUse = ['core/clock.ts', 'report/overview-script.ts'];
    expect(usersOf(pattern, (file) => mayUse.includes(file))).toEqual([]);
  });

  it('only cli.ts ends the process', () => {
    expect(usersOf(/process\.exit\(|process\.exitCode/, (file) => file === 'cli.ts')).toEqual([]);
  });

  it('only store/open.ts names a concrete store', () => {
    expect(usersOf(/'[^']*\/(?:sqlite|postgres)\/[^']*\.js'/, (file) => file === 'store/open.ts')).toEqual(
      [],
    );
  });

  it('SQL and its drivers stand with the stores, and with the reader of databases as inputs', () => {
    const isHome = (file: string): boolean =>
      /^store\/(sqlite|postgres|sql)\/|^input\/sqlite\.ts$/.test(file);
    expect(usersOf(/better-sqlite3/, isHome)).toEqual([]);
    expect(usersOf(/from 'pg'/, (file) => file.startsWith('store/postgres/'))).toEqual([]);
    const sql =
      /\bSELECT\s[^'"`]*\sFROM\s|\bINSERT\s+(?:OR\s+\w+\s+)?INTO\s|\bUPDATE\s+\w+\s+SET\s|\bDELETE\s+FROM\s|\bCREATE\s+(?:TEMP\s+|UNIQUE\s+)?(?:TABLE|INDEX|TRIGGER|VIEW)\s|\bPRAGMA\s|\.pragma\(/;
    // Its help shows a query of the user's.
    expect(usersOf(sql, (file) => isHome(file) || file === 'commands/run.ts')).toEqual([]);
  });

  it('only the composition names a concrete provider', () => {
    const composition = 'app/composition.ts';
    const except = (file: string): boolean => file === composition || file.startsWith('provider/openai/');
    expect(usersOf(/provider\/openai|from 'openai|from 'undici/, except)).toEqual([]);
  });

  it('one endpoint is told from another in endpoints/ and in the simulator alone', () => {
    const except = (file: string): boolean => /^(endpoints|simulator)\/|^core\/endpoint-name/.test(file);
    expect(
      usersOf(
        /endpoints\/(?!endpoints?\.js|rendered-request|structured-output|recognise|multi-request)|'(?:chat|responses|embeddings|completions|moderations)'/,
        except,
      ),
    ).toEqual([]);
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

describe('names', () => {
  /** Names of files, and of the types that they export, that are found more than once, with where. */
  const repeated = new Map<string, string[]>();
  // The simulator shares no word with what it judges, and endpoints are alike on purpose, as backends of the store are.
  const telling = files.filter(
    (file) => !/^simulator\/|^endpoints\/(?!chat\/)\w+\/|^store\/postgres\//.test(file),
  );
  for (const file of telling) {
    const types = codeOf(file).matchAll(/^export (?:abstract )?(?:interface|type|class|enum) (\w+)/gm);
    for (const name of [file.slice(file.lastIndexOf('/') + 1), ...[...types].map(([, type = '']) => type)]) {
      repeated.set(name, [...(repeated.get(name) ?? []), file]);
    }
  }
  for (const [name, places] of repeated) if (places.length === 1) repeated.delete(name);

  it('no two files and no two exported types have one name, but for those that are listed', () => {
    const listed = (name: string): boolean => name in MEANT_TWICE || STILL_TWICE.includes(name);
    expect([...repeated].filter(([name]) => !listed(name)).map((found) => found.flat().join(' '))).toEqual(
      [],
    );
  });

  it('a name that is told apart by now is off the lists', () => {
    const listed = [...Object.keys(MEANT_TWICE), ...STILL_TWICE];
    expect(listed.filter((name) => !repeated.has(name))).toEqual([]);
  });
});
