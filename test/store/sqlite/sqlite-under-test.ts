import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, systemClock } from '../../../src/core/clock.js';
import { openStore } from '../../../src/store/open.js';
import type { Store } from '../../../src/store/store.js';
import { NOW_MS, type StoreUnderTest } from '../../contract/store/builders.js';

/** A real file in a folder of its own. */
export async function openSqliteUnderTest(): Promise<StoreUnderTest> {
  const folder = mkdtempSync(join(tmpdir(), 'llm-batch-store-'));
  const path = join(folder, 'llm-batch.db');
  let passedMs = 0;
  // Waits for a lock are real: who holds it does not know of this clock.
  const clock: Clock = { ...systemClock, now: () => NOW_MS + passedMs, monotonicMs: () => passedMs };
  const open = (): Promise<Store> => openStore(path, { mode: 'write', clock });
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
