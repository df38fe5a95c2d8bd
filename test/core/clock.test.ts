import { getEventListeners } from 'node:events';
import { closeSync, fdatasync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { nextTurn, systemClock } from '../../src/core/clock.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryFolder } from '../support/program.js';

describe('the system clock', () => {
  it('wakes a sleeper when its signal aborts and leaves no listener behind', async () => {
    const controller = new AbortController();
    const sleep = systemClock.sleep(3_600_000, controller.signal);
    controller.abort();
    await sleep;
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
  });

  it('does not sleep at all when the signal has aborted already', async () => {
    await systemClock.sleep(3_600_000, AbortSignal.abort());
  });

  it('leaves no listener behind when the time is over', async () => {
    const controller = new AbortController();
    await systemClock.sleep(1, controller.signal);
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
  });

  it('holds a wait longer than a timer can instead of firing at once', async () => {
    const controller = new AbortController();
    let woken = false;
    const sleep = systemClock.sleep(2 ** 40, controller.signal).then(() => {
      woken = true;
    });
    await systemClock.sleep(20);
    expect(woken).toBe(false);
    controller.abort();
    await sleep;
  });
});

describe('the clock that stands still', () => {
  it('fires nothing before what comes of a disk has had its turn', async () => {
    const folder = temporaryFolder();
    const file = openSync(join(folder.path, 'written'), 'w');
    const fired = { early: 0 };
    for (let round = 0; round < 100; round += 1) {
      const clock = new FakeClock();
      const syncThenTurn = async (): Promise<void> => {
        writeSync(file, '.');
        await promisify(fdatasync)(file);
        await nextTurn();
      };
      clock.after(10, () => {
        fired.early += 1;
      });
      await clock.runUntil(syncThenTurn());
    }
    closeSync(file);
    folder.remove();
    expect(fired.early).toBe(0);
  });
});
