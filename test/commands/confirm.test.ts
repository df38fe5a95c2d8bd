/** Whoever is asked may say no in many ways; who cannot be asked has to say --yes. */
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { CommandContext } from '../../src/app/context.js';
import { Interrupts } from '../../src/app/interrupts.js';
import { confirm } from '../../src/commands/confirm.js';
import { systemClock } from '../../src/core/clock.js';

const QUESTION = 'Delete everything?';

function asked(isTerminal: boolean) {
  const stdin = Object.assign(new PassThrough(), { isTTY: isTerminal });
  const stderr = new PassThrough();
  const interrupts = new Interrupts(systemClock);
  const context = { stdin, stderr, interrupts } as unknown as CommandContext;
  return { stdin, stderr, interrupts, answer: (isSure = false) => confirm(context, QUESTION, isSure) };
}

describe('at a terminal', () => {
  it.each([
    ['y', true],
    ['Y', true],
    ['yes', true],
    [' yes ', true],
    ['', false],
    ['n', false],
    ['yesterday', false],
    ['no y', false],
  ])('%j means %s', async (typed, agrees) => {
    const { stdin, stderr, answer } = asked(true);
    const answered = answer();
    stdin.write(`${typed}\n`);
    expect(await answered).toBe(agrees);
    expect(String(stderr.read())).toBe('Delete everything? [y/N] ');
  });

  it('a long question is broken between words', async () => {
    const { stdin, stderr, interrupts } = asked(true);
    const narrow = { stdin, stderr: Object.assign(stderr, { columns: 20 }), interrupts };
    const answered = confirm(narrow as unknown as CommandContext, 'Delete these runs for good?', false);
    stdin.end();
    await answered;
    expect(String(stderr.read())).toBe('Delete these runs\nfor good? [y/N] ');
  });

  it('the end of the input is a no', async () => {
    const { stdin, answer } = asked(true);
    stdin.end();
    expect(await answer()).toBe(false);
  });

  it('Ctrl-C is a no, before the question too', async () => {
    const { interrupts, answer } = asked(true);
    const answered = answer();
    interrupts.raise('SIGINT');
    expect(await answered).toBe(false);
    expect(await answer()).toBe(false);
  });

  it('--yes is not asked', async () => {
    const { stderr, answer } = asked(true);
    expect(await answer(true)).toBe(true);
    expect(stderr.read()).toBeNull();
  });
});

describe('without a terminal', () => {
  it('nobody is asked, and nothing is taken for a yes', async () => {
    const { stdin, answer } = asked(false);
    stdin.write('y\n');
    await expect(answer()).rejects.toMatchObject({
      code: 'CONFIRMATION_NEEDED',
      exitCode: 2,
      hint: expect.stringContaining('--yes'),
    });
    expect(await answer(true)).toBe(true);
  });
});
