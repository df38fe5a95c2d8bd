import { describe, expect, it } from 'vitest';
import { Interrupts } from '../../src/commands/interrupts.js';
import { FakeClock } from '../support/fake-clock.js';

describe('interrupts', () => {
  it('one keystroke that arrives several times within a moment counts once, a later one counts again', async () => {
    const clock = new FakeClock();
    const interrupts = new Interrupts(clock);
    const heard: number[] = [];
    interrupts.subscribe((count) => heard.push(count));
    interrupts.raise();
    await clock.advance(20);
    interrupts.raise();
    await clock.advance(200);
    interrupts.raise();
    expect(heard).toEqual([1]);
    await clock.advance(300);
    interrupts.raise();
    expect(heard).toEqual([1, 2]);
    expect(interrupts.count).toBe(2);
  });

  it('who listens late is told at once, who has left is not', () => {
    const interrupts = new Interrupts(new FakeClock());
    const heard: number[] = [];
    const leave = interrupts.subscribe((count) => heard.push(count));
    leave();
    interrupts.raise();
    expect(heard).toEqual([]);
    interrupts.subscribe((count) => heard.push(count));
    expect(heard).toEqual([1]);
  });
});
