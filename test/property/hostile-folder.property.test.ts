/**
 * Whatever a folder's configuration or a store says, the program ends with an error of its own or does its work: it
 * never breaks down, sends a byte to anybody whom the user has not named, or writes outside the folder. A failure
 * prints the seed that repeats it.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SETTINGS } from '../../src/config/settings.js';
import { isJsonObject, type Json, type JsonObject } from '../../src/core/json.js';
import { craftStore } from '../support/crafted-store.js';
import { runInProcess } from '../support/in-process.js';
import { temporaryFolder } from '../support/program.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

/** Many commands, each of which does its whole work. */
const TIMEOUT_MS = 240_000;

interface Listener {
  readonly server: Server;
  readonly url: string;
  heard: number;
}

/** Where the user's own calls go, and where an attacker would like them to go. */
let own: Listener;
let other: Listener;
let outside: ReturnType<typeof temporaryFolder>;

beforeAll(async () => {
  own = await listen();
  other = await listen();
  outside = temporaryFolder();
});

afterAll(() => {
  for (const { server } of [own, other]) {
    server.closeAllConnections();
    server.close();
  }
  outside.remove();
});

async function listen(): Promise<Listener> {
  const server = createServer((request, response) => {
    listener.heard += 1;
    request.resume().on('end', () => {
      response.setHeader('content-type', 'application/json');
      response.end('{"data":[],"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const listener: Listener = { server, url, heard: 0 };
  return listener;
}

/** An error that is not the program's own is thrown. */
async function ran(args: readonly string[], workspace: Workspace, environment: Record<string, string>) {
  const home = { HOME: join(workspace.folder, 'home'), OPENAI_API_KEY: 'sk-mine', GITHUB_TOKEN: 'ghp-mine' };
  const end = await runInProcess(args, {
    folder: workspace.folder,
    environment: { ...home, ...environment },
  });
  expect(end.exitCode, end.stderr).not.toBe(1);
  expect(readdirSync(outside.path)).toEqual([]);
}

const ODD_VALUES = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    -1,
    0,
    1e308,
    '',
    'auto',
    '5%',
    [],
    {},
    [[]],
    '\u001b]0;x\u0007\u202e',
  ),
  fc.string({ unit: 'binary' }),
  fc.json().map((text) => JSON.parse(text) as unknown),
);

it('a configuration', { timeout: TIMEOUT_MS }, async () => {
  const names = [...SETTINGS.map(({ name }) => name), 'lanes', '__proto__', 'toString'];
  const plausible = (name: string): fc.Arbitrary<unknown> => {
    const path = fc.constantFrom(
      join(outside.path, 'file'),
      '../file',
      'docs.jsonl',
      './new.db',
      '.',
      'sqlite:/x',
    );
    const lane = fc.record(
      {
        name: fc.constantFrom('a', 'b'),
        apiKeyEnv: fc.constantFrom<unknown>('GITHUB_TOKEN', 'OPENAI_API_KEY', 3),
        baseUrl: fc.constantFrom<unknown>(other.url, null, '://'),
        models: fc.constantFrom<unknown>({}, { x: 'y' }, []),
        weight: fc.constantFrom<unknown>(1, 'many'),
      },
      { requiredKeys: ['apiKeyEnv'] },
    );
    switch (name) {
      case 'baseUrl':
        return fc.constant(other.url);
      case 'apiKeyEnv':
        return fc.constantFrom<unknown>('GITHUB_TOKEN', ['GITHUB_TOKEN', 'OPENAI_API_KEY']);
      case 'lanes':
        return fc.array(lane, { minLength: 1, maxLength: 3 });
      case 'prompt':
      case 'system':
        return fc.constantFrom('{{text}}', '{{image text}}', '{{', '{{a.b.c}}');
      default:
        return SETTINGS.find((setting) => setting.name === name)?.reaches === 'path'
          ? path
          : fc.constantFrom<unknown>(1, 2, true, false, '1s', 'jsonl');
    }
  };
  const setting = fc
    .constantFrom(...names)
    .chain((name) =>
      fc.tuple(fc.constant(name), fc.oneof({ weight: 3, arbitrary: plausible(name) }, ODD_VALUES)),
    );
  const text = fc.oneof(
    { weight: 9, arbitrary: fc.array(setting, { maxLength: 5 }).map(textOf) },
    { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
  );
  await fc.assert(
    fc.asyncProperty(text, async (config) => {
      const workspace = new Workspace();
      try {
        workspace.writeDocuments('docs.jsonl', numberedDocuments(1));
        workspace.write('llm-batch.config.json', config);
        for (const args of [['doctor'], ['run', 'docs.jsonl', '--timeout', '2s'], ['status']]) {
          // The user says who is called; the configuration would have to add to it.
          await ran(args, workspace, { OPENAI_BASE_URL: own.url });
        }
      } finally {
        workspace.remove();
      }
      expect(other.heard).toBe(0);
    }),
    { numRuns: 25 },
  );
});

/** Not `JSON.stringify` of an object, which would have no `__proto__` of its own. */
function textOf(settings: readonly (readonly [string, unknown])[]): string {
  return `{${settings.map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value) ?? 'null'}`).join(',')}}`;
}

it('a store', { timeout: TIMEOUT_MS }, async () => {
  const workspace = new Workspace();
  await craftStore(workspace, { baseUrl: own.url });
  const sound = readFileSync(workspace.storePath);
  const columns = columnsOf(workspace.storePath);
  const oddText = fc.oneof(
    ODD_VALUES.map((value) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))),
    fc.constantFrom(other.url, '/etc/passwd', join(outside.path, 'file'), '{"text":', '\ud800'),
  );
  const oddValue = fc.oneof(
    ODD_VALUES,
    fc.constantFrom<unknown>(
      other.url,
      'GITHUB_TOKEN',
      ['GITHUB_TOKEN'],
      join(outside.path, 'file'),
      1,
      'text',
    ),
    fc.constant([{ name: 'a', apiKeyEnv: 'GITHUB_TOKEN', baseUrl: other.url, models: {}, weight: 1 }]),
  );
  const change = fc.oneof(
    fc.record({
      column: fc.constantFrom(...columns),
      value: fc.oneof(oddText, fc.maxSafeInteger(), fc.double(), fc.constant(null)),
    }),
    fc.record({ setting: fc.constantFrom(...settingsOf(workspace.storePath)), value: oddValue }),
    fc.record({ offset: fc.nat(sound.length - 1), byte: fc.nat(255) }),
  );
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 3 }), async (changes) => {
        for (const ending of ['', '-wal', '-shm', '.lock'])
          rmSync(workspace.storePath + ending, { force: true });
        writeFileSync(workspace.storePath, sound);
        for (const each of changes) {
          if ('column' in each) alter(workspace.storePath, each.column, each.value);
          if ('setting' in each) alterSetting(workspace.storePath, each.setting, each.value);
        }
        const bytes = readFileSync(workspace.storePath);
        for (const each of changes) if ('offset' in each) bytes[each.offset] = each.byte;
        writeFileSync(workspace.storePath, bytes);
        const environment = { OPENAI_BASE_URL: own.url };
        for (const args of [
          ['status'],
          ['results', '-o', '-'],
          ['failures'],
          ['doctor'],
          ['resume'],
          ['report'],
        ]) {
          await ran(args, workspace, environment);
        }
        expect(other.heard).toBe(0);
      }),
      { numRuns: 30 },
    );
  } finally {
    workspace.remove();
  }
});

function columnsOf(path: string): { table: string; name: string }[] {
  const database = new Database(path, { readonly: true });
  try {
    return database
      .prepare<[], { table: string; name: string }>(
        `SELECT tables.name AS "table", columns.name AS name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
         WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite%'`,
      )
      .all();
  } finally {
    database.close();
  }
}

type Path = readonly string[];

/** Every field of the run's settings, as the names that lead to it. */
function settingsOf(path: string): Path[] {
  const pathsIn = (value: unknown): Path[] =>
    isJsonObject(value)
      ? Object.entries(value).flatMap(([name, inner]) => [
          [name],
          ...pathsIn(inner).map((rest) => [name, ...rest]),
        ])
      : [];
  return pathsIn(readSettings(path));
}

function readSettings(path: string): JsonObject {
  const database = new Database(path, { readonly: true });
  const text = database.prepare<[], string>('SELECT settings_json FROM runs').pluck().get() ?? '{}';
  database.close();
  return JSON.parse(text) as JsonObject;
}

function alterSetting(path: string, names: Path, value: unknown): void {
  try {
    const settings = readSettings(path);
    const last = names.at(-1) ?? '';
    const parent = names.slice(0, -1).reduce<Json>((at, name) => (at as JsonObject)[name] ?? {}, settings);
    (parent as JsonObject)[last] = value as Json;
    alter(path, { table: 'runs', name: 'settings_json' }, JSON.stringify(settings));
  } catch {
    // An earlier change has made something else of them.
  }
}

/** Some changes the tables' own rules do not let happen. */
function alter(path: string, { table, name }: { table: string; name: string }, value: unknown): void {
  const database = new Database(path);
  try {
    database.pragma('foreign_keys = OFF');
    database.pragma('ignore_check_constraints = ON');
    database.prepare(`UPDATE "${table}" SET "${name}" = ?`).run(value);
  } catch {
  } finally {
    database.close();
  }
}
