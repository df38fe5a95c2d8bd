import { describe, expect, it } from 'vitest';
import { Interrupts } from '../../src/app/interrupts.js';
import { FakeClock } from '../support/fake-clock.js';

describe('interrupts', () => {
  it('one keystroke that arrives several times within a moment counts once, a later one counts again', async () => {
    const clock = new FakeClock();
    const interrupts = new Interrupts(clock);
    const heard: number[] = [];
    interrupts.subscribe((count) => heard.push(count));
    interrupts.raise('SIGINT');
    await clock.advance(20);
    interrupts.raise('SIGINT');
    await clock.advance(200);
    interrupts.raise('SIGINT');
    expect(heard).toEqual([1]);
    await clock.advance(300);
    interrupts.raise('SIGINT');
    expect(heard).toEqual([1, 2]);
    expect(interrupts.count).toBe(2);
  });

  it('a terminal that hangs up asks once, however often and late it says so, and does not hurry who has asked', async () => {
    const clock = new FakeClock();
    for (const first of ['SIGHUP', 'SIGINT'] as const) {
      const interrupts = new Interrupts(clock);
      const heard: number[] = [];
      interrupts.subscribe((count) => heard.push(count));
      interrupts.raise(first);
      await clock.advance(2_000);
      expect(interrupts.raise('SIGHUP')).toBe(true);
      await clock.advance(2_000);
      interrupts.raise('SIGHUP');
      expect(heard).toEqual([1]);
      interrupts.raise('SIGTERM');
      expect(heard).toEqual([1, 2]);
    }
  });

  it('who listens late is told at once, who has left is not', () => {
    const interrupts = new Interrupts(new FakeClock());
    const heard: number[] = [];
    const leave = interrupts.subscribe((count) => heard.push(count));
    leave();
    interrupts.raise('SIGINT');
    expect(heard).toEqual([]);
    interrupts.subscribe((count) => heard.push(count));
    expect(heard).toEqual([1]);
  });
});
