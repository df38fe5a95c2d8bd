/** How often the store is asked for its runs, however many look on, and however often they come and go. */
import { expect, it } from 'vitest';
import { RunWatch } from '../../src/server/run-watch.js';
import { FakeClock } from '../support/fake-clock.js';

/** A store of no runs that answers when it is let. */
function heldStore() {
  const held: (() => void)[] = [];
  return {
    looks: 0,
    answer: (): void => held.shift()?.(),
    listRuns(): Promise<[]> {
      this.looks += 1;
      return new Promise((resolve) => held.push(() => resolve([])));
    },
    summarizeRun: () => Promise.reject(new Error('There is none.')),
  };
}

it('asks the store once a second for one who came while the look for the last who left was under way', async () => {
  const clock = new FakeClock();
  const store = heldStore();
  const watch = new RunWatch(store, clock);
  watch.follow(() => undefined)();
  const told: string[] = [];
  const leave = watch.follow((json) => void told.push(json));
  store.answer();
  await clock.advance(0);
  expect(told).toEqual(['{"runs":[],"left_out":0}']);
  expect(store.looks).toBe(1);
  await clock.advance(1_000);
  expect(store.looks).toBe(2);
  leave();
  store.answer();
  await clock.advance(60_000);
  expect(store.looks).toBe(2);
});

it('looks no more once nobody looks on, and again when somebody comes back', async () => {
  const clock = new FakeClock();
  const store = heldStore();
  const watch = new RunWatch(store, clock);
  const leave = watch.follow(() => undefined);
  store.answer();
  await clock.advance(0);
  leave();
  await clock.advance(60_000);
  expect([store.looks, clock.pendingTimers]).toEqual([1, 0]);
  watch.follow(() => undefined);
  expect(store.looks).toBe(2);
});
