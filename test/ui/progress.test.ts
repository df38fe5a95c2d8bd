import { describe, expect, it } from 'vitest';
import type { ProgressSnapshot } from '../../src/core/progress-snapshot.js';
import { appearanceOf } from '../../src/ui/colours.js';
import { createProgress, type Progress } from '../../src/ui/progress.js';
import { FakeClock } from '../support/fake-clock.js';
import { snapshot } from './sample-run.js';
import { Log, Screen } from './screen.js';

interface Display {
  readonly progress: Progress;
  readonly clock: FakeClock;
  set(change: Partial<ProgressSnapshot>): void;
}

function displayOn(stream: Screen | Log, environment: Record<string, string> = {}, quiet = false): Display {
  let current = snapshot;
  const clock = new FakeClock();
  const progress = createProgress({
    stream,
    environment,
    appearance: appearanceOf(stream, environment, true),
    clock,
    quiet,
    snapshot: () => current,
  });
  return {
    progress,
    clock,
    set: (change) => {
      current = { ...current, ...change };
    },
  };
}

const barAt = (completed: string): RegExp =>
  new RegExp(`^42\\.0% [━╸─]+ ${completed}/300,000 · ETA 1 h 04 min$`, 'm');

describe('the progress of a run on a terminal', () => {
  it('is drawn at once and ten times a second over the same two rows', async () => {
    const screen = new Screen(80);
    const { progress, clock, set } = displayOn(screen);
    progress.start();
    expect(screen.text).toMatch(barAt('126,000'));
    for (let tick = 1; tick <= 10; tick += 1) {
      set({ completed: 125_997 + tick });
      await clock.advance(100);
    }
    expect(screen.text).toMatch(barAt('126,010'));
    expect(screen.text.split('\n')).toHaveLength(2);
    expect(screen.text).not.toContain('126,009');
    progress.stop();
  });

  it('is one write per frame, and none while nothing changes', async () => {
    const screen = new Screen(80);
    const { progress, clock, set } = displayOn(screen);
    progress.start();
    const before = screen.writes.length;
    await clock.advance(1_000);
    expect(screen.writes.length).toBe(before);
    set({ completed: 130_000 });
    await clock.advance(1_000);
    expect(screen.writes.length).toBe(before + 1);
    progress.stop();
  });

  it('hides the cursor while it runs and leaves cursor and wrapping as they were', async () => {
    const screen = new Screen(80);
    const { progress, clock } = displayOn(screen);
    progress.start();
    expect(screen.cursorShown).toBe(false);
    await clock.advance(500);
    expect(screen.wrapping).toBe(true);
    progress.stop();
    expect(screen.cursorShown).toBe(true);
    expect(clock.pendingTimers).toBe(0);
  });

  it('lets other lines be printed above', async () => {
    const screen = new Screen(80);
    const { progress, clock, set } = displayOn(screen);
    progress.start();
    progress.log('warning: the first');
    await clock.advance(100);
    set({ completed: 130_000, failed: 0 });
    await clock.advance(100);
    progress.log('warning: the second');
    const rows = screen.text.split('\n');
    expect(rows.slice(0, 2)).toEqual(['warning: the first', 'warning: the second']);
    expect(rows).toHaveLength(4);
    expect(rows[2]).toContain('130,000/300,000');
    progress.stop();
  });

  it('leaves one line standing, and what is printed after it stands below', async () => {
    const screen = new Screen(80);
    const { progress, clock, set } = displayOn(screen);
    progress.start();
    set({ completed: 299_997 });
    await clock.advance(4_000);
    progress.stop();
    progress.stop();
    progress.log('done');
    expect(screen.text).toBe(` 100% ${'━'.repeat(39)} 300,000/300,000 · in 4.0 s\ndone`);
  });

  it('fits the terminal at every width, also when that changes under it', async () => {
    const screen = new Screen(200);
    const { progress, clock, set } = displayOn(screen);
    progress.start();
    for (const columns of [200, 120, 81, 60, 30, 9, 60, 250]) {
      screen.resizeTo(columns);
      screen.tooWide.length = 0;
      set({ completed: columns * 100 });
      await clock.advance(100);
      expect(screen.tooWide).toEqual([]);
    }
    progress.stop();
  });

  it('climbs over the rows that a narrower terminal has broken its lines into', async () => {
    const screen = new Screen(120);
    const { progress } = displayOn(screen);
    progress.start();
    // 99 and 113 columns are three and three rows of 40.
    screen.resizeTo(40);
    expect(screen.writes.at(-1)?.startsWith('\r\x1b[5A')).toBe(true);
    progress.stop();
  });

  it('is coloured on a terminal and plain under NO_COLOR', () => {
    const coloured = new Screen(80);
    const plain = new Screen(80);
    const displays = [displayOn(coloured), displayOn(plain, { NO_COLOR: '1' })];
    for (const { progress } of displays) progress.start();
    expect(coloured.writes.join('')).toContain('\x1b[36m');
    expect(plain.writes.join('')).not.toContain('\x1b[3');
    expect(plain.writes.join('')).not.toContain('\x1b[2m');
    expect(plain.text).toBe(coloured.text);
    for (const { progress } of displays) progress.stop();
  });

  it('leaves no listener behind', () => {
    const screen = new Screen(80);
    const signals = ['SIGCONT', 'SIGTSTP', 'exit'];
    const before = signals.map((name) => process.listenerCount(name));
    const { progress } = displayOn(screen);
    progress.start();
    progress.stop();
    expect(signals.map((name) => process.listenerCount(name))).toEqual(before);
    expect(screen.listenerCount('resize')).toBe(0);
  });
});

describe('the progress of a run in a log', () => {
  it('is a first line, one every ten seconds, and a last one', async () => {
    const log = new Log();
    const { progress, clock, set } = displayOn(log);
    progress.start();
    expect(log.lines).toHaveLength(1);
    await clock.advance(9_999);
    expect(log.lines).toHaveLength(1);
    set({ completed: 200_000 });
    await clock.advance(1);
    expect(log.lines).toHaveLength(2);
    set({ completed: 299_997 });
    progress.stop();
    progress.stop();
    await clock.advance(60_000);
    expect(log.lines.map((line) => line.split(' ')[0])).toEqual([
      '126,000/300,000',
      '200,003/300,000',
      '300,000/300,000',
    ]);
    expect(log.text).not.toContain('\x1b');
  });

  it('does not repeat its last line', () => {
    const log = new Log();
    const { progress } = displayOn(log);
    progress.start();
    progress.stop();
    expect(log.lines).toHaveLength(1);
  });

  it('is what a dumb terminal gets too', () => {
    const screen = new Screen(80);
    const { progress } = displayOn(screen, { TERM: 'dumb' });
    progress.start();
    progress.log('warning: something');
    progress.stop();
    expect(screen.writes.join('')).not.toContain('\x1b');
    expect(screen.text).toMatch(/^126,000\/300,000 done .*\nwarning: something$/);
  });

  it('does not harm the run when nobody reads it any more', async () => {
    const log = new Log();
    const { progress, clock } = displayOn(log);
    progress.start();
    log.destroy(new Error('EPIPE'));
    await clock.advance(20_000);
    progress.stop();
  });
});

describe('under --quiet', () => {
  it('nothing is shown', async () => {
    for (const stream of [new Screen(80), new Log()]) {
      const { progress, clock } = displayOn(stream, {}, true);
      progress.start();
      progress.log('warning');
      await clock.advance(30_000);
      progress.stop();
      expect(stream.text).toBe('');
    }
  });
});
