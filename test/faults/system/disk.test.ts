/** Disks that are full, broken, read-only, locked or hold something else: nothing that was paid for is lost. */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import Database from 'better-sqlite3';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FaultRun } from '../../support/fault-run.js';
import {
  AS_ORDINARY_USER,
  HAS_ORDINARY_USER,
  HAS_PRIVATE_MOUNTS,
  HAS_STRACE,
} from '../../support/fault-tools.js';
import type { ProgramEnd } from '../../support/program.js';
import { type SimulatorProcess, startSimulatorProcess } from '../../support/simulator-process.js';
import { SmallDisk } from '../../support/small-disk.js';
import { faultsIn, injecting } from '../../support/strace.js';
import { waitFor } from '../../support/wait-for.js';

const CONCURRENCY = 4;

let simulator: SimulatorProcess;
let run: FaultRun;

beforeAll(async () => {
  simulator = await startSimulatorProcess({ latencyMs: 20 });
});

afterAll(() => simulator.stop());

afterEach(() => run.remove());

/** Signals within it count as one; a little more than the program's own. */
const ONE_KEYSTROKE_MS = 400;

describe.skipIf(!HAS_PRIVATE_MOUNTS)('a disk that fills up (needs private mounts)', () => {
  let disk: SmallDisk;
  let wrapper: readonly string[];
  let environment: Record<string, string>;

  beforeEach(async () => {
    run = new FaultRun({
      simulator,
      documents: 200,
      concurrency: CONCURRENCY,
      flags: ['--db', 'disk/llm-batch.db'],
    });
    mkdirSync(run.workspace.path('disk'));
    mkdirSync(run.workspace.path('tmp'));
    disk = await SmallDisk.mount(run.workspace.path('disk'), 1_200);
    wrapper = disk.wrapper(run.workspace.folder);
    environment = { TMPDIR: run.workspace.path('tmp') };
  });

  afterEach(() => disk.unmount());

  function salvageFiles(): string[] {
    return readdirSync(run.workspace.path('tmp')).filter((name) => name.endsWith('.salvage.jsonl'));
  }

  /** Waits for the first complaint, and then sees that nobody is called any more. */
  async function fillUp(program: { readonly stderr: () => string }): Promise<number> {
    await waitFor('the disk to be full', () => program.stderr().includes('The disk is full'));
    const callsWhenFull = await run.calls();
    await waitFor('open calls to end', async () => (await simulator.books()).openCalls === 0);
    const calls = await run.calls();
    expect(calls).toBeLessThanOrEqual(callsWhenFull + CONCURRENCY);
    expect(calls).toBeLessThan(run.documents.length);
    return calls;
  }

  async function expectDone(end: ProgramEnd, extraCalls: number): Promise<void> {
    expect(end.exitCode, end.stderr).toBe(0);
    disk.copyTo(run.workspace.folder);
    expect(await run.violations(extraCalls)).toEqual([]);
  }

  it('and has room again while the run waits, costs nothing', async () => {
    const program = run.start('run', { wrapper, environment });
    const calls = await fillUp(program);
    expect(program.stderr()).toContain('Nothing new is sent; what was answered is held.');
    // It goes on trying, and calls nobody.
    await expect(waitFor('a call', async () => (await run.calls()) > calls, 4_000)).rejects.toThrow(
      'in vain',
    );
    expect(program.stderr().split('The disk is full'), 'told once').toHaveLength(2);
    disk.grow(64_000);
    const end = await program.ended;
    expect(end.stderr).toContain('the store can be written again');
    await expectDone(end, 0);
  });

  it('and stays full, ends the run; its answers are kept elsewhere and are not asked for again', async () => {
    const program = run.start('run', { wrapper, environment, deadlineMs: 120_000 });
    const calls = await fillUp(program);
    const end = await program.ended;
    expect(end.exitCode, end.stderr).toBe(5);
    expect(end.stderr).toMatch(/The disk is full: .*disk\/llm-batch\.db cannot grow/);
    expect(end.stderr).toMatch(/answers? kept in .*\/tmp\/llm-batch-[0-9a-f]{16}\.salvage\.jsonl/);
    expect(salvageFiles()).toHaveLength(1);
    expect(await run.calls()).toBe(calls);

    disk.grow(64_000);
    await expectDone(await run.finish({ wrapper, environment }), 0);
    expect(salvageFiles()).toEqual([]);
  });

  it('and nowhere is there room, says how many answers are lost, and asks for these alone again', async () => {
    environment = { TMPDIR: disk.folder };
    const program = run.start('run', { wrapper, environment });
    const calls = await fillUp(program);
    // Asked twice to stop, it waits for the disk no longer. Signals that come together count as one, and one that
    // comes while the process ends would end it by itself.
    program.kill('SIGINT');
    await waitFor('the first to count', () => /^stopping/m.test(program.stderr()));
    let askedAtMs = performance.now();
    await waitFor('the second to count', () => {
      if (program.stderr().match(/^(stopping|cutting off)/gm)?.length === 2) return true;
      if (performance.now() - askedAtMs < ONE_KEYSTROKE_MS) return false;
      askedAtMs = performance.now();
      program.kill('SIGINT');
      return false;
    });
    const end = await program.ended;
    expect(end.exitCode, end.stderr).toBe(5);
    const lost = Number(/(\d+) answers? could not be stored, nor saved to /.exec(end.stderr)?.[1]);
    expect(lost).toBeGreaterThan(0);
    expect(lost).toBeLessThanOrEqual(2 * CONCURRENCY);

    disk.grow(64_000);
    const resumed = await run.finish({ wrapper, environment });
    expect(await run.calls()).toBeLessThanOrEqual(run.documents.length + 2 * CONCURRENCY);
    expect(calls).toBeLessThan(run.documents.length);
    await expectDone(resumed, 2 * CONCURRENCY);
  });
});

describe.skipIf(!HAS_STRACE)('a disk that fails to sync (needs strace)', () => {
  /** As counted from the start of the program; the first twenty or so go into making the store. */
  const FAILED_SYNCS = [8, 22, 28, 34, 40];

  it('ends the run at once; what was acknowledged is there, and nothing is asked for again', async () => {
    let printed = 0;
    for (const nth of FAILED_SYNCS) {
      run = new FaultRun({ simulator, documents: 80, concurrency: CONCURRENCY });
      const trace = run.workspace.path('trace.txt');
      const wrapper = injecting({ call: 'fsync', fault: 'error=EIO', when: String(nth) }, trace);
      const end = await run.live('run', { wrapper });
      expect(faultsIn(trace).injected).toBe(1);
      expect(end.exitCode, end.stderr).toBe(5);
      expect(end.stderr).toContain('The disk reported an error');
      expect(await run.calls()).toBeLessThan(run.documents.length);
      const isImported = end.stderr.includes('documents imported');
      if (isImported) expect(await run.violations(0, false), `sync ${nth}`).toEqual([]);
      printed = Math.max(printed, run.printed.length);
      const resumed = await run.finish();
      expect(resumed.exitCode, resumed.stderr).toBe(0);
      expect(await run.violations(0), `sync ${nth}`).toEqual([]);
      if (nth !== FAILED_SYNCS.at(-1)) run.remove();
    }
    expect(printed, 'some sync must fail after answers').toBeGreaterThan(0);
  });
});

describe.skipIf(!HAS_ORDINARY_USER)('a folder that cannot be written (needs an ordinary user)', () => {
  it('is told before anybody is called', async () => {
    run = new FaultRun({ simulator, documents: 3, concurrency: CONCURRENCY });
    chmodSync(run.workspace.folder, 0o555);
    const end = await run.live('run', { wrapper: AS_ORDINARY_USER });
    chmodSync(run.workspace.folder, 0o755);
    expect(end.exitCode, end.stderr).toBe(5);
    expect(end.stderr).toContain('read-only for this user');
    expect(await run.calls()).toBe(0);
    expect(readdirSync(run.workspace.folder)).toEqual(['docs.jsonl']);
  });
});

describe('a store that another program holds locked', () => {
  it('for eight seconds, holds the run up and costs nothing', async () => {
    run = new FaultRun({ simulator, documents: 120, concurrency: CONCURRENCY });
    const program = run.start('run');
    // The first call goes alone; behind it the others are on their way.
    await waitFor('the first answers', () => program.stdout().split('\n').length > 4);
    const other = new Database(run.workspace.storePath, { timeout: 5_000 });
    other.exec('BEGIN IMMEDIATE');
    const lockedAtMs = performance.now();
    // Calls that were written down before may still be sent and come back, until the store is seen to be locked.
    let seen = { calls: 0, atMs: lockedAtMs };
    await waitFor('open calls to end', async () => {
      const { openCalls, calls } = await simulator.books();
      if (openCalls > 0 || calls !== seen.calls) seen = { calls, atMs: performance.now() };
      return performance.now() - seen.atMs > 1_000;
    });
    const printed = program.stdout();
    const calls = await run.calls();
    await waitFor('eight seconds of lock', () => performance.now() - lockedAtMs > 8_000);
    expect(await run.calls()).toBe(calls);
    expect(program.stdout()).toBe(printed);
    expect(calls).toBeLessThan(run.documents.length);
    other.exec('COMMIT');
    other.close();
    const end = await program.ended;
    expect(end.exitCode, end.stderr).toBe(0);
    expect(await run.violations(0)).toEqual([]);
  });
});

describe('a file that is no sound store', () => {
  const DAMAGES: Readonly<Record<string, (path: string) => void>> = {
    'with pages overwritten': (path) => overwrite(path, 8_192, Buffer.alloc(20 * 4_096, 0xa5)),
    'without its header': (path) => overwrite(path, 0, Buffer.alloc(100)),
    'cut in the middle': (path) => truncateSync(path, Math.floor(readFileSync(path).length / 2)),
    'of random bytes': (path) =>
      writeFileSync(path, Buffer.from(Array.from({ length: 5_000 }, (_, index) => (index * 151) % 256))),
    'of another program': (path) => {
      writeFileSync(path, '');
      const database = new Database(path);
      database.exec('CREATE TABLE letters (text); INSERT INTO letters VALUES (1)');
      database.close();
    },
  };

  function overwrite(path: string, offset: number, bytes: Buffer): void {
    const content = readFileSync(path);
    bytes.copy(content, offset);
    writeFileSync(path, content);
  }

  it.each(Object.keys(DAMAGES))('%s, is refused, left as it is, and nobody is called', async (damage) => {
    run = new FaultRun({ simulator, documents: 60, concurrency: 16 });
    expect((await run.live('run')).exitCode).toBe(0);
    const { storePath } = run.workspace;
    copyFileSync(storePath, run.workspace.path('sound.db'));
    DAMAGES[damage]?.(storePath);
    const before = readFileSync(storePath);
    const calls = await run.calls();
    for (const command of ['run', 'resume'] as const) {
      const end = await run.live(command);
      expect(end.exitCode, end.stderr).toBe(5);
      expect(end.stderr).toContain(storePath);
      expect(end.stderr).toMatch(/is damaged, or is not an SQLite database|but not one of llm-batch/);
    }
    expect(readFileSync(storePath).equals(before)).toBe(true);
    expect(await run.calls()).toBe(calls);
    expect(existsSync(`${storePath}-wal`)).toBe(false);
  });
});
