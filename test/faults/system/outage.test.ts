/**
 * A server that goes away in the middle of a run and comes back, as the program meets it: no document fails, it is
 * hardly called meanwhile, and full speed is back within ten seconds. The speed is the server's own count, before
 * against after, so that a busy machine weighs on both. Every kind of outage has servers, a store and a process of its
 * own, all side by side.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { selfSignedCertificate } from '../../support/certificate.js';
import { ANSWER_TOKENS, type Fault, LoopbackProxy, OutageServer } from '../../support/outage-server.js';
import { waitFor } from '../../support/wait-for.js';
import { numberedDocuments, Workspace } from '../../support/workspace.js';

const OPEN = 4;
/** Answers that tell how fast it goes: two seconds of them at the best speed. */
const ANSWERS_MEASURED = 40;
const FULL_SPEED_AFTER_MS = 10_000;
/** Enough to last until full speed has been measured, where others begin later on a busy machine. */
const DOCUMENTS = 560;
const HOST = 'llm.test';
const NAMED_HOST_PATH = join(import.meta.dirname, '..', '..', 'support', 'named-host.mjs');

/** How an outage is brought about, and how the program has to be started for it. */
interface Scene {
  readonly url: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly wrapper?: readonly string[];
  readonly flags?: readonly string[];
  begin(): unknown;
  end(): unknown;
  close?(): unknown;
}

interface Kind {
  /** What the user has to read of it. */
  readonly told: RegExp;
  /** Calls are refused before anything of them leaves, so they may cost nothing at all. */
  readonly isUnsent?: boolean;
  readonly isSecure?: boolean;
  readonly scene: (server: OutageServer, workspace: Workspace) => Scene | Promise<Scene>;
}

function answering(told: RegExp, fault: Fault, flags: readonly string[] = []): Kind {
  return {
    told,
    scene: (server) => ({
      url: `http://127.0.0.1:${server.port}/v1`,
      flags,
      begin: () => server.meet(fault),
      end: () => server.meet(null),
    }),
  };
}

function page(title: string): string {
  return `<!DOCTYPE html>\n<html><head><title>${title}</title></head><body><h1>${title}</h1></body></html>\n`;
}

const certificate = selfSignedCertificate(HOST);

function behindProxy(scheme: 'http' | 'https'): Kind {
  return {
    told: /ECONNREFUSED|reset|closed/,
    isUnsent: true,
    isSecure: scheme === 'https',
    async scene(server, workspace) {
      const proxy = new LoopbackProxy();
      await proxy.listen();
      writeFileSync(workspace.path('authority.pem'), certificate.cert);
      return {
        url: `${scheme}://${HOST}:${server.port}/v1`,
        environment: {
          [`${scheme}_proxy`]: `http://127.0.0.1:${proxy.port}`,
          NODE_EXTRA_CA_CERTS: workspace.path('authority.pem'),
        },
        begin: () => proxy.close(),
        end: () => proxy.listen(),
        close: () => proxy.close(),
      };
    },
  };
}

const KINDS: Readonly<Record<string, Kind>> = {
  '500': answering(/500/, { status: 500, body: '{"error": {"message": "Internal server error"}}' }),
  '502': answering(/502/, { status: 502, body: page('502 Bad Gateway') }),
  '504': answering(/504/, { status: 504, body: page('504 Gateway Time-out') }),
  '522': answering(/522/, { status: 522, body: page('llm.test | 522: Connection timed out') }),
  reset: answering(/reset|closed/, 'reset'),
  hang: answering(/No complete answer within 2 s/, 'hang', ['--timeout', '2s']),
  refused: {
    told: /ECONNREFUSED|reset|closed/,
    isUnsent: true,
    scene: (server) => ({
      url: `http://127.0.0.1:${server.port}/v1`,
      begin: () => server.close(),
      end: () => server.listen(),
    }),
  },
  DNS: {
    told: /EAI_AGAIN|reset|closed/,
    isUnsent: true,
    scene(server, workspace) {
      const unknown = workspace.path('unknown');
      return {
        url: `http://${HOST}:${server.port}/v1`,
        wrapper: [process.execPath, NAMED_HOST_PATH, HOST, unknown],
        begin() {
          writeFileSync(unknown, '');
          server.dropConnections();
        },
        end: () => workspace.removeFile('unknown'),
      };
    },
  },
  TLS: {
    told: /certificate|reset|closed/,
    isUnsent: true,
    isSecure: true,
    scene(server, workspace) {
      writeFileSync(workspace.path('authority.pem'), certificate.cert);
      return {
        url: `https://127.0.0.1:${server.port}/v1`,
        environment: { NODE_EXTRA_CA_CERTS: workspace.path('authority.pem') },
        begin: () => server.show(selfSignedCertificate(HOST)),
        end: () => server.show(certificate),
      };
    },
  },
  'a dead proxy': behindProxy('http'),
  'a dead proxy to https': behindProxy('https'),
};

/** A program that is about to read its documents, so that many can begin at once. */
async function prepare(name: string, kind: Kind, flags: (workspace: Workspace) => readonly string[]) {
  const workspace = new Workspace();
  const server = new OutageServer(kind.isSecure ? certificate : null);
  await server.listen();
  const scene = await kind.scene(server, workspace);
  const program = workspace.start(
    [
      ...['run', '-', '--base-url', scene.url, '--model', 'test-model', '--concurrency', String(OPEN)],
      ...[...(scene.flags ?? []), ...flags(workspace)],
    ],
    {
      environment: { OPENAI_API_KEY: 'sk-none', ...scene.environment },
      wrapper: scene.wrapper ?? [],
      keepStdinOpen: true,
      deadlineMs: 500_000,
    },
  );
  await waitFor(`${name} to read`, () => program.stderr().includes('reading'), 120_000);
  return { name, kind, workspace, server, scene, program };
}

type Prepared = Awaited<ReturnType<typeof prepare>>;

/** Takes a server away for a while, and waits for the end of the run. */
async function liveThrough({ name, kind, workspace, server, scene, program }: Prepared, forMs: number) {
  const beganAtMs = performance.now();
  await scene.begin();
  await after(forMs);
  await scene.end();
  const healedAtMs = performance.now();
  const end = await program.ended;
  const status = end.exitCode === 0 ? await workspace.status() : null;
  return {
    name,
    kind,
    beganAtMs,
    healedAtMs,
    end,
    status,
    answers: server.answers,
    troubled: troubledCalls(workspace),
  };
}

type Life = Awaited<ReturnType<typeof liveThrough>>;

/** Runs through outages of all these kinds side by side, from their first calls to their ends. */
async function liveAll(
  kinds: Readonly<Record<string, Kind>>,
  forMs: number,
  documents: number,
  flags: (kind: Kind, workspace: Workspace) => readonly string[] = () => [],
): Promise<Life[]> {
  const prepared = await Promise.all(
    Object.entries(kinds).map(([name, kind]) => prepare(name, kind, (workspace) => flags(kind, workspace))),
  );
  const lines = numberedDocuments(documents).map((document) => `${JSON.stringify(document)}\n`);
  for (const { program } of prepared) program.child.stdin?.end(lines.join(''));
  const isHealthy = ({ name, program, server }: Prepared): boolean => {
    if (program.child.exitCode !== null) throw new Error(`${name} ended early: ${program.stderr()}`);
    return server.answers.length > ANSWERS_MEASURED;
  };
  await waitFor('full speed', () => prepared.every(isHealthy), 120_000);
  const lives = await Promise.all(prepared.map((each) => liveThrough(each, forMs)));
  for (const { workspace, server, scene } of prepared) {
    await scene.close?.();
    await server.close();
    workspace.remove();
  }
  console.table(
    lives.map((life) => ({
      outage: life.name,
      exit: life.end.exitCode,
      'answers a second before': speedBefore(life).toFixed(1),
      'ten seconds after it': speedAfter(life).toFixed(1),
      'calls in vain': life.troubled,
    })),
  );
  return lives;
}

function expectHarmless({ name, kind, end, status, troubled }: Life, documents: number): void {
  const what = `${name}: ${end.stderr}`;
  expect(end.exitCode, what).toBe(0);
  expect(status?.documents, what).toMatchObject({ completed: documents, failed: 0 });
  expect(troubled, what).toBeGreaterThan(0);
  expect(troubled, what).toBeLessThanOrEqual(mostInVain(documents));
  expect(end.stderr, what).toMatch(/ does not answer/);
  expect(end.stderr, what).toMatch(kind.told);
  expect(end.stderr, what).toMatch(/ answers again, after/);
}

/** Calls beyond one a document that an outage may cost: those that were open, and the tries. */
function mostInVain(documents: number): number {
  return Math.floor(OPEN + 0.05 * documents);
}

/** As much as the documents need and the calls that an outage may cost, and no more. */
function limits({ isUnsent }: Kind, workspace: Workspace): string[] {
  const usdPerMillion = 1_000;
  const calls = DOCUMENTS + (isUnsent ? OPEN : mostInVain(DOCUMENTS));
  const table = { models: { 'test-model': { input: 0, output: usdPerMillion } } };
  workspace.write('prices.json', JSON.stringify(table));
  const mostUsd = (calls * ANSWER_TOKENS * usdPerMillion) / 1_000_000;
  return [
    ...['--rpd', String(calls), '--max-cost', mostUsd.toFixed(2)],
    ...['--prices', 'prices.json', '--param', `max_tokens=${ANSWER_TOKENS}`],
  ];
}

/** Calls in the store that met what a server does instead of answering. */
function troubledCalls(workspace: Workspace): number {
  const sql = "SELECT count(*) AS calls FROM calls WHERE kind IN ('network', 'overloaded', 'timeout')";
  return workspace.query<{ calls: number }>(sql)[0]?.calls ?? 0;
}

type Answers = OutageServer['answers'];

/** Answers a second, of the last before the outage. */
function speedBefore({ answers, beganAtMs }: Life, of: Answers = answers): number {
  return speed(of.filter(({ atMs }) => atMs < beganAtMs).slice(-ANSWERS_MEASURED));
}

/** The same of the first ones from ten seconds after it on. */
function speedAfter({ answers, healedAtMs }: Life, of: Answers = answers): number {
  return speed(of.filter(({ atMs }) => atMs >= healedAtMs + FULL_SPEED_AFTER_MS).slice(0, ANSWERS_MEASURED));
}

function speed(answers: Answers): number {
  const [first, last] = [answers[0], answers.at(-1)];
  if (first === undefined || last === undefined || first === last) return 0;
  return (answers.length - 1) / ((last.atMs - first.atMs) / 1_000);
}

/** The machine is not alike busy all the time. */
const FULL_SPEED = 0.6;

describe('a server that goes away, whatever way,', () => {
  it('for eight seconds fails no document, and full speed is back ten seconds later', async () => {
    for (const life of await liveAll(KINDS, 8_000, DOCUMENTS)) {
      expectHarmless(life, DOCUMENTS);
      expect(speedAfter(life), life.name).toBeGreaterThan(FULL_SPEED * speedBefore(life));
    }
  });

  it('for thirty seconds needs no more of --rpd and --max-cost than a few calls', async () => {
    for (const life of await liveAll(KINDS, 30_000, DOCUMENTS, limits)) {
      expectHarmless(life, DOCUMENTS);
      expect(speedAfter(life), life.name).toBeGreaterThan(FULL_SPEED * speedBefore(life));
    }
  });

  it('on one of two lanes leaves its calls to the other', async () => {
    const kind: Kind = {
      told: /502/,
      scene: (server) => ({
        url: `http://127.0.0.1:${server.port}/v1`,
        flags: ['--api-key-env', 'STAYS,GOES'],
        environment: { STAYS: 'sk-stays', GOES: 'sk-goes' },
        begin: () => server.meet({ status: 502, body: page('502 Bad Gateway') }, 'sk-goes'),
        end: () => server.meet(null),
      }),
    };
    const documents = 700;
    for (const life of await liveAll({ 'one of two lanes': kind }, 10_000, documents)) {
      expectHarmless(life, documents);
      expect(life.end.stderr).toMatch(/GOES@\S+ does not answer/);
      const meanwhile = life.answers.filter(
        ({ atMs }) => atMs > life.beganAtMs + 2_000 && atMs < life.healedAtMs,
      );
      expect(speed(meanwhile)).toBeGreaterThan(FULL_SPEED * speedBefore(life));
      const itsOwn = life.answers.filter(({ key }) => key === 'sk-goes');
      expect(speedAfter(life, itsOwn)).toBeGreaterThan(FULL_SPEED * speedBefore(life, itsOwn));
    }
  });
});
