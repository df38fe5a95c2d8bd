import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import { type Clock, systemClock } from '../../../src/core/clock.js';
import { EXIT_CODES, LlmBatchError } from '../../../src/core/errors.js';
import { openStore } from '../../../src/store/open.js';
import { serveStore } from '../../../src/store/sqlite/thread.js';
import { storeBehind } from '../../../src/store/sqlite/threaded-store.js';
import type { Store } from '../../../src/store/store.js';
import { NOW_MS, type StoreUnderTest } from '../../contract/store/builders.js';

const ENDED = { code: 'STORE_THREAD_ENDED', exitCode: EXIT_CODES.store };

type Open = (path: string, clock: Clock) => Promise<Store>;

/** A real file in a folder of its own. @param openAt how it is opened; default: in this thread */
export async function openSqliteUnderTest(
  openAt: Open = (path, clock) => openStore(path, { mode: 'write', clock }),
): Promise<StoreUnderTest> {
  const folder = mkdtempSync(join(tmpdir(), 'llm-batch-store-'));
  const path = join(folder, 'llm-batch.db');
  let passedMs = 0;
  // Waits for a lock are real: who holds it does not know of this clock.
  const clock: Clock = { ...systemClock, now: () => NOW_MS + passedMs, monotonicMs: () => passedMs };
  const open = (): Promise<Store> => openAt(path, clock);
  const store = await open();
  const others: Store[] = [];
  return {
    store,
    openAgain: async () => {
      const other = await open();
      others.push(other);
      return other;
    },
    passTime: async (ms) => {
      passedMs += ms;
    },
    dispose: async () => {
      for (const each of [store, ...others]) await each.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** The same, used as over a thread's port; both ends are in this process, where they have a clock of the test's. */
export function openThreadedUnderTest(): Promise<StoreUnderTest> {
  return openSqliteUnderTest(async (path, clock) => {
    const { port1, port2 } = new MessageChannel();
    const ended = once(port1, 'close').then(() => new LlmBatchError('closed', ENDED));
    void serveStore(port2, () => openStore(path, { mode: 'write', clock }));
    return storeBehind(port1, ended);
  });
}
