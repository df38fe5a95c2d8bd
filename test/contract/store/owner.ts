import { describe, expect, it } from 'vitest';
import type { StoreOwner } from '../../../src/store/store.js';
import { createRun, NOW_MS } from './builders.js';
import type { StoreOf } from './store-of.js';

const OWNER: StoreOwner = { pid: 123, host: 'laptop', runName: 'reviews', sinceMs: NOW_MS };

export function ownerContract(storeOf: StoreOf): void {
  describe('drain lock', () => {
    it('has no owner at first', async () => {
      const store = await storeOf();
      expect(await store.readOwner()).toBeNull();
    });

    it('refuses a second owner by the name of the first, unless the store can be shared', async () => {
      const store = await storeOf();
      const other = await storeOf.again();
      await store.acquireDrainLock(OWNER);
      const second = other.acquireDrainLock({ ...OWNER, pid: 456 });
      if (store.capabilities.sharedDrain) {
        await second;
        return;
      }
      await expect(second).rejects.toMatchObject({ code: 'STORE_LOCKED', exitCode: 5 });
      await expect(second).rejects.toThrow(
        /process 123 on laptop \(run "reviews"\) since 2027-01-15T08:00:00/,
      );
      expect(await other.readOwner()).toEqual(OWNER);
      expect(await store.readOwner()).toEqual(OWNER);
    });

    it('hinders nobody who only reads or writes', async () => {
      const store = await storeOf();
      const other = await storeOf.again();
      await store.acquireDrainLock(OWNER);
      await createRun(other);
      expect(await store.listRuns()).toHaveLength(1);
    });

    it('is free again when its owner closes the store', async () => {
      const store = await storeOf();
      const owner = await storeOf.again();
      await owner.acquireDrainLock(OWNER);
      await owner.close();
      expect(await store.readOwner()).toBeNull();
      await store.acquireDrainLock({ ...OWNER, pid: 456 });
      expect((await store.readOwner())?.pid).toBe(456);
    });
  });
}
