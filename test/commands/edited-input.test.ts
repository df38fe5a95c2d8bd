/** An input that was edited between two runs: what is answered stays answered, whatever moved around it. */
import { rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runInProcess } from '../support/in-process.js';
import { type SimulatorProcess, startSimulatorProcess } from '../support/simulator-process.js';
import { answerTo, type ResultLine, Workspace } from '../support/workspace.js';

const A = { text: 'Row A is about apples.' };
const B = { text: 'Row B is about bread.' };
const X = { text: 'Row X is about xylophones.' };

let workspace: Workspace;
let simulator: SimulatorProcess;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorProcess();
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

interface RunReport {
  readonly exitCode: number | null;
  readonly stderr: string;
  /** Calls that this run made, as the server counts them. */
  readonly calls: number;
}

/** Writes the documents and runs them. */
function run(documents: readonly object[], ...flags: readonly string[]): Promise<RunReport> {
  return runTyping(undefined, documents, '--base-url', simulator.url, ...flags);
}

/** The same without a server. @param typed at a terminal; undefined: there is none */
async function runTyping(
  typed: string | undefined,
  documents: readonly object[],
  ...flags: readonly string[]
): Promise<RunReport> {
  workspace.writeDocuments('docs.jsonl', documents);
  const before = (await simulator.books()).calls;
  const { exitCode, stderr } = await runInProcess(['run', 'docs.jsonl', ...flags], {
    folder: workspace.folder,
    ...(typed === undefined ? {} : { typed }),
  });
  return { exitCode, stderr, calls: (await simulator.books()).calls - before };
}

function results(name = 'docs.results.jsonl'): Pick<ResultLine, 'line' | 'output'>[] {
  return workspace.readLines(name).map(({ line, output }) => ({ line, output }));
}

function answersTo(documents: readonly { readonly text: string }[]) {
  return documents.map(({ text }, index) => ({ line: index + 1, output: answerTo(text) }));
}

describe('rows that only moved', () => {
  it('keep their answers when a new one is put above them: one call, three results', async () => {
    expect(await run([A, B])).toMatchObject({ exitCode: 0, calls: 2 });
    const edited = await run([X, A, B]);
    expect(edited).toMatchObject({ exitCode: 0, calls: 1 });
    expect(edited.stderr).toContain('2 unchanged · 1 new');
    expect(results()).toEqual(answersTo([X, A, B]));
  });

  it('cost nothing in another order, and come out in that order', async () => {
    await run([A, B, X]);
    expect(await run([X, B, A])).toMatchObject({ exitCode: 0, calls: 0 });
    expect(results()).toEqual(answersTo([X, B, A]));
  });

  it('leave the results when they are gone, and are back with their answer when they come back', async () => {
    await run([A, B]);
    const without = await run([A]);
    expect(without).toMatchObject({ exitCode: 0, calls: 0 });
    expect(without.stderr).toContain('1 unchanged · 1 gone');
    expect(results()).toEqual(answersTo([A]));
    expect((await workspace.status()).documents).toMatchObject({ total: 1, completed: 1, gone: 1 });

    expect(await run([B, A])).toMatchObject({ exitCode: 0, calls: 0 });
    expect(results()).toEqual(answersTo([B, A]));
  });

  it('that are equal in every word get an answer each, and one more costs one call', async () => {
    expect(await run([A, A, A])).toMatchObject({ exitCode: 0, calls: 3 });
    expect(results()).toEqual(answersTo([A, A, A]));
    expect(await run([A, A])).toMatchObject({ exitCode: 0, calls: 0 });
    expect(results()).toEqual(answersTo([A, A]));
    expect(await run([A, X, A, A, A])).toMatchObject({ exitCode: 0, calls: 2 });
    expect(results()).toEqual(answersTo([A, X, A, A, A]));
  });

  it('without an id that were edited are other rows', async () => {
    await run([A, B]);
    expect(await run([{ text: `${A.text} And pears.` }, B])).toMatchObject({ exitCode: 0, calls: 1 });
    expect(results()).toEqual(answersTo([{ text: `${A.text} And pears.` }, B]));
  });

  it('carry metadata as it is now', async () => {
    await run([{ id: 'a', ...A, metadata: { shelf: 1 } }]);
    expect(await run([{ id: 'a', ...A, metadata: { shelf: 2 } }])).toMatchObject({ exitCode: 0, calls: 0 });
    expect(workspace.readLines('docs.results.jsonl')).toMatchObject([{ metadata: { shelf: 2 } }]);
  });
});

describe('a row with an id whose answer would be paid for again', () => {
  const before = [
    { id: 'a', text: A.text },
    { id: 'b', text: B.text },
  ];
  const after = [
    { id: 'a', text: X.text },
    { id: 'b', text: B.text },
  ];

  beforeEach(async () => {
    await run(before);
  });

  it('stops the run, which names both ways out and touches nothing', async () => {
    const file = workspace.read('docs.results.jsonl');
    const refused = await run(after);
    expect(refused).toMatchObject({ exitCode: 2, calls: 0 });
    expect(refused.stderr).toContain('1 unchanged · 1 changed');
    expect(refused.stderr).toContain('--rerun-changed');
    expect(refused.stderr).toContain('--keep');
    expect(workspace.read('docs.results.jsonl')).toBe(file);
    expect(await workspace.status()).toMatchObject({ status: 'finished', documents: { completed: 2 } });
    expect((await workspace.results()).map(({ output }) => output)).toEqual(
      before.map(({ text }) => answerTo(text)),
    );
  });

  it.each([
    ['a', { exitCode: 0, calls: 1 }, [X, B]],
    ['k', { exitCode: 0, calls: 0 }, [A, B]],
    ['s', { exitCode: 2, calls: 0 }, [A, B]],
    ['', { exitCode: 2, calls: 0 }, [A, B]],
  ])('on a terminal it asks, and does what is typed: %j', async (typed, end, answered) => {
    const asked = await runTyping(`${typed}\n`, after);
    expect(asked).toMatchObject(end);
    const words = asked.stderr.replace(/\s+/g, ' ');
    expect(words).toContain("1 document of run 'docs' would now be sent differently than when answered");
    expect(words).toContain('pay for them again (a), keep the answers they have (k), or stop here (s)? ');
    expect(results()).toEqual(answersTo(answered));
  });

  it('a rehearsal is asked about without a word of paying', async () => {
    await runTyping(undefined, before, '--simulate', '-o', 'rehearsal.jsonl');
    const { stderr } = await runTyping('s\n', after, '--simulate', '-o', 'rehearsal.jsonl');
    expect(stderr).toContain('send them again (a)');
    expect(stderr).not.toMatch(/\b(pay|paid|cost)/i);
  });

  it('--rerun-changed pays for it again', async () => {
    expect(await run(after, '--rerun-changed')).toMatchObject({ exitCode: 0, calls: 1 });
    expect(results()).toEqual(answersTo(after));
    expect(await run(after)).toMatchObject({ exitCode: 0, calls: 0 });
  });

  it('--rerun-changed pays once for each edit, however often the input is edited', async () => {
    for (const text of ['Row A, second version.', 'Row A, third version.', 'Row A, fourth version.']) {
      const edited = [{ id: 'a', text }, ...after.slice(1)];
      expect(await run(edited)).toMatchObject({ exitCode: 2, calls: 0 });
      const again = await run(edited, '--rerun-changed');
      expect(again).toMatchObject({ exitCode: 0, calls: 1 });
      expect(again.stderr).toContain('1 unchanged · 1 changed');
      expect(results()).toEqual(answersTo(edited));
      expect(await run(edited)).toMatchObject({ exitCode: 0, calls: 0 });
      expect(await workspace.status()).toMatchObject({
        documents: { total: 2, completed: 2, pending: 0, gone: 0 },
      });
    }
  });

  it('--keep keeps the answer it has, also in its new place, and new rows are still called', async () => {
    const [first, second] = after;
    const moved = [second, { id: 'x', text: X.text }, first];
    expect(
      await run(
        moved.filter((row) => row !== undefined),
        '--keep',
      ),
    ).toMatchObject({
      exitCode: 0,
      calls: 1,
    });
    expect(results()).toEqual(answersTo([B, X, A]));
    // What was kept is still not what the input says.
    expect(await run(after)).toMatchObject({ exitCode: 2, calls: 0 });
  });

  it('a row that has failed is no answer to be kept: it is sent as it is now', async () => {
    const failing = [...before, { id: 'c', text: '[[simulate:refuse]] Row C.' }];
    expect(await run(failing)).toMatchObject({ exitCode: 3, calls: 1 });
    const mended = [...before, { id: 'c', text: 'Row C in other words.' }];
    expect(await run(mended)).toMatchObject({ exitCode: 0, calls: 1 });
    expect(results()).toEqual(answersTo(mended));
  });
});

describe('a request that was answered before', () => {
  const SHORTEN = ['--prompt', 'Shorten: {{text}}'];
  const TRANSLATE = ['--prompt', 'Translate: {{text}}'];
  const shortened = answersTo([A, B].map(({ text }) => ({ text: `Shorten: ${text}` })));

  it('is not paid for again when the prompt goes back to it, and needs no flag', async () => {
    await run([A, B], ...SHORTEN);
    await run([A, B], ...TRANSLATE, '--rerun-changed');
    const before = await workspace.status();
    const back = await run([A, B, X], ...SHORTEN);
    expect(back).toMatchObject({ exitCode: 0, calls: 1 });
    expect(back.stderr).toContain('docs: 2 answered before · 1 new');
    expect(results().slice(0, 2)).toEqual(shortened);
    // The ledger has the calls of all three, each once.
    expect(before).toMatchObject({ calls: { made: 4 }, documents: { completed: 2 } });
    expect(await workspace.status()).toMatchObject({ calls: { made: 5 }, documents: { completed: 3 } });

    expect(await run([A, B], ...TRANSLATE)).toMatchObject({ exitCode: 0, calls: 0 });
    expect(await run([A, B], ...SHORTEN)).toMatchObject({ exitCode: 0, calls: 0 });
    expect(results()).toEqual(shortened);
  });

  it('is not paid for again when a row is edited a second time, back to what it was', async () => {
    const rows = (text: string) => [{ id: 'a', text }];
    await run(rows(A.text));
    await run(rows(B.text), '--rerun-changed');
    expect(await run(rows(A.text))).toMatchObject({ exitCode: 0, calls: 0 });
    expect(await run(rows(X.text))).toMatchObject({ exitCode: 2, calls: 0 });
    expect(await run(rows(X.text), '--rerun-changed')).toMatchObject({ exitCode: 0, calls: 1 });
    expect(await run(rows(B.text))).toMatchObject({ exitCode: 0, calls: 0 });
    expect(results()).toEqual(answersTo([B]));
  });

  it('has its answer too where the run in between was stopped half way', async () => {
    await run([A, B], ...SHORTEN);
    await simulator.reconfigure({ outage: { fault: 'insufficient-quota' } });
    expect(await run([A, B], ...TRANSLATE, '--rerun-changed')).toMatchObject({ exitCode: 4 });
    expect(await run([A, B], ...SHORTEN)).toMatchObject({ exitCode: 0, calls: 0 });
    expect(results()).toEqual(shortened);
  });

  it('is asked anew of another server, and known again at the first', async () => {
    const other = await startSimulatorProcess();
    try {
      await run([A], ...SHORTEN);
      await run([A], ...TRANSLATE, '--rerun-changed', '--base-url', other.url);
      const there = await run([A], ...SHORTEN, '--base-url', other.url);
      expect(there.stderr).toContain('1 changed');
      expect(there).toMatchObject({ exitCode: 2, calls: 0 });
      expect(await run([A], ...SHORTEN)).toMatchObject({ exitCode: 0, calls: 0 });
    } finally {
      await other.stop();
    }
  });
});

describe('settings that changed', () => {
  it('another prompt changes every row, so it is asked first', async () => {
    await run([A, B], '--prompt', 'Shorten: {{text}}');
    const refused = await run([A, B], '--prompt', 'Translate: {{text}}');
    expect(refused).toMatchObject({ exitCode: 2, calls: 0 });
    expect(refused.stderr).toContain('2 changed');
    expect(refused.stderr).toContain('--rerun-changed');

    const again = await run([A, B], '--prompt', 'Translate: {{text}}', '--rerun-changed');
    expect(again).toMatchObject({ exitCode: 0, calls: 2 });
    expect(results()).toEqual(
      answersTo([{ text: `Translate: ${A.text}` }, { text: `Translate: ${B.text}` }]),
    );
  });

  it('another prompt for rows that wait is simply used', async () => {
    await simulator.reconfigure({ outage: { fault: 'insufficient-quota' } });
    expect(await run([A, B], '--prompt', 'Shorten: {{text}}')).toMatchObject({ exitCode: 4 });
    await simulator.heal();
    expect(await run([A, B], '--prompt', 'Translate: {{text}}')).toMatchObject({ exitCode: 0, calls: 2 });
    expect(results()).toEqual(
      answersTo([{ text: `Translate: ${A.text}` }, { text: `Translate: ${B.text}` }]),
    );
  });

  it('another name is another run, with answers and files of its own', async () => {
    await run([A, B]);
    expect(await run([A, B], '--name', 'second')).toMatchObject({ exitCode: 0, calls: 2 });
    expect(results('docs.second.results.jsonl')).toEqual(answersTo([A, B]));
    expect(await run([A, B, X])).toMatchObject({ exitCode: 0, calls: 1 });
    expect((await workspace.status('docs')).documents).toMatchObject({ completed: 3 });
    expect((await workspace.status('second')).documents).toMatchObject({ completed: 2 });
  });

  it('a rehearsal and a real run of one input never share an answer', async () => {
    workspace.writeDocuments('docs.jsonl', [A]);
    const rehearsed = await runInProcess(['run', 'docs.jsonl', '--simulate'], { folder: workspace.folder });
    expect(rehearsed.exitCode, rehearsed.stderr).toBe(0);
    expect(await run([A])).toMatchObject({ exitCode: 0, calls: 1 });
    expect((await workspace.status('docs')).documents).toMatchObject({ completed: 1 });
    expect((await workspace.status('docs-simulated')).documents).toMatchObject({ completed: 1 });

    const mixed = await runInProcess(['run', 'docs.jsonl', '--simulate', '--name', 'docs'], {
      folder: workspace.folder,
    });
    expect(mixed.exitCode).toBe(2);
    expect(mixed.stderr).toContain('never mixed');
  });
});

describe('a run again without --base-url', () => {
  const rows = [{ id: 'a', ...A }];
  const edited = [...rows, { id: 'b', ...B }];

  it('keeps the server that its run was begun with', async () => {
    await run(rows);
    expect(await runTyping(undefined, edited)).toMatchObject({ exitCode: 0, calls: 1 });
    expect(results()).toEqual(answersTo(edited));
  });

  it('does not where somebody else began it, until it is trusted', async () => {
    await run(rows);
    rmSync(workspace.path('.local'), { recursive: true });
    const refused = await runTyping(undefined, edited);
    expect(refused).toMatchObject({ exitCode: 2, calls: 0 });
    expect(refused.stderr).toContain('add --trust-store');
    expect(await runTyping(undefined, edited, '--trust-store')).toMatchObject({ exitCode: 0, calls: 1 });
  });

  it('has none to keep in a rehearsal, or under another name', async () => {
    await run(rows);
    expect(await runTyping(undefined, edited, '--simulate', '-o', 'r.jsonl')).toMatchObject({
      exitCode: 0,
      calls: 0,
    });
    const other = await runTyping(undefined, edited, '--name', 'other');
    expect(other).toMatchObject({ exitCode: 2, calls: 0 });
    expect(other.stderr).toContain('OPENAI_API_KEY is not set');
  });
});
