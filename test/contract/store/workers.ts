import { describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.js';
import {
  callEnd,
  callStart,
  claim,
  claimOne,
  completed,
  completedTogether,
  documents,
  LEASE_MS,
  NOW_MS,
  openRun,
  released,
  results,
  startCall,
  USAGE,
} from './builders.js';
import type { StoreOf } from './store-of.js';

const NOTHING = { rescued: 0, lostCalls: 0, poisoned: 0 };

/** Two workers that share a store, each over a connection of its own. */
export function workersContract(storeOf: StoreOf): void {
  describe('of several workers', () => {
    /** A run of ten documents, of which each of two workers has two in progress, with a call open for both. */
    async function twoAtWork() {
      const [alpha, beta] = [await storeOf(), await storeOf.again()];
      const runId = await openRun(alpha, documents(10));
      const work = async (store: Store, worker: string) => {
        const tasks = await claim(store, runId, 2, worker);
        const { callIds } = await store.record([callStart(runId, tasks)], []);
        return { tasks, callId: Number(callIds[0]) };
      };
      return { runId, alpha, beta, ofAlpha: await work(alpha, 'alpha'), ofBeta: await work(beta, 'beta') };
    }

    it('those that beat stay alive, however long they take, and those that do not are rescued by the others', async () => {
      const { runId, alpha, beta, ofAlpha, ofBeta } = await twoAtWork();
      for (let beat = 0; beat < 5; beat += 1) {
        await storeOf.passTime(LEASE_MS / 2);
        await beta.beat('beta', LEASE_MS);
        // Whoever looks while both are alive finds nothing.
        if (beat === 0) expect(await beta.rescueTasks({ crashLimit: 3 })).toEqual(NOTHING);
      }
      expect(await beta.rescueTasks({ crashLimit: 3 })).toEqual({ rescued: 2, lostCalls: 1, poisoned: 0 });
      expect((await alpha.summarizeRun(runId)).calls).toMatchObject({ made: 2, open: 1, repeated: 1 });
      const again = await claim(beta, runId, 2, 'beta');
      expect(again.map(({ taskId }) => taskId)).toEqual(ofAlpha.tasks.map(({ taskId }) => taskId));
      expect(again.map(({ crashCount }) => crashCount)).toEqual([1, 1]);
      const answered = await beta.record(
        [],
        ofBeta.tasks.map((task) => completed(task)),
      );
      expect(answered.lostTaskIds).toEqual([]);
    });

    it('a worker that claims is alive as long as its lease says, without a beat', async () => {
      const { runId, alpha, beta } = await twoAtWork();
      await storeOf.passTime(0.9 * LEASE_MS);
      await claim(alpha, runId, 1, 'alpha');
      await storeOf.passTime(0.9 * LEASE_MS);
      expect(await beta.rescueTasks({ crashLimit: 3 })).toMatchObject({ rescued: 2 });
      expect((await beta.summarizeRun(runId)).counts.in_progress).toBe(3);
    });

    it('the answer of one that was given up is refused, and its bill is kept, once', async () => {
      const { runId, alpha, beta, ofAlpha } = await twoAtWork();
      await beta.rescueTasks({ workers: ['alpha'], crashLimit: 3 });
      const heirs = await claim(beta, runId, 2, 'beta');
      const late = completedTogether(ofAlpha.tasks, callEnd(ofAlpha.callId));
      const lostTaskIds = ofAlpha.tasks.map(({ taskId }) => taskId);
      for (let time = 0; time < 2; time += 1) {
        expect((await alpha.record([], [late])).lostTaskIds).toEqual(lostTaskIds);
      }
      expect(await alpha.summarizeRun(runId)).toMatchObject({
        calls: { made: 2, open: 1, failed: 0, repeated: 1, late: 1 },
        usage: USAGE,
        costMicroUsd: 42,
        counts: { in_progress: 4, completed: 0 },
      });
      expect(await results(beta, runId)).toEqual([]);
      const { lostTaskIds: lostByHeir } = await beta.record(
        [],
        heirs.map((task) => completed(task)),
      );
      expect(lostByHeir).toEqual([]);
      expect(await beta.maintenance.recount()).toEqual([]);
    });

    it('one that was given up makes no more calls for what it had, but works on when it is back', async () => {
      const { runId, alpha, beta, ofAlpha } = await twoAtWork();
      await storeOf.passTime(2 * LEASE_MS);
      await beta.beat('beta', LEASE_MS);
      await beta.rescueTasks({ crashLimit: 3 });
      expect((await alpha.record([callStart(runId, ofAlpha.tasks)], [])).callIds).toEqual([null]);
      await alpha.beat('alpha', LEASE_MS);
      const task = await claimOne(alpha, runId, 'alpha');
      await startCall(alpha, runId, task);
      expect(await beta.rescueTasks({ crashLimit: 3 })).toEqual(NOTHING);
      expect((await alpha.record([], [completed(task)])).lostTaskIds).toEqual([]);
    });

    it('none is blamed for what another one was working on, nor spared for it', async () => {
      const store = await storeOf();
      const other = await storeOf.again();
      const runId = await openRun(store, documents(3));
      await startCall(store, runId, await claimOne(store, runId, 'alpha'));
      await startCall(other, runId, await claimOne(other, runId, 'beta'));
      // Alone in its own worker's hands, whatever else is in progress.
      expect(await other.rescueTasks({ workers: ['alpha'], crashLimit: 1 })).toMatchObject({ poisoned: 1 });
      await other.noteStop('beta');
      expect(await store.rescueTasks({ workers: ['beta'], crashLimit: 1 })).toEqual({
        rescued: 1,
        lostCalls: 1,
        poisoned: 0,
      });
    });

    it('those before a process that drains alone are dead, and what they left is put back by the next rescue', async () => {
      const { runId, alpha, beta, ofAlpha } = await twoAtWork();
      await alpha.record(
        [],
        ofAlpha.tasks.map((task) => released(task)),
      );
      const owner = { pid: 123, host: 'laptop', runName: 'reviews', sinceMs: NOW_MS };
      await beta.acquireDrainLock(owner);
      expect(await beta.rescueTasks({ crashLimit: 3 })).toEqual(
        beta.capabilities.sharedDrain ? NOTHING : { rescued: 2, lostCalls: 2, poisoned: 0 },
      );
      await claim(beta, runId, 2, 'gamma');
      // For another run of the same process nobody is taken for dead again.
      await beta.acquireDrainLock({ ...owner, runName: 'another' });
      expect(await beta.rescueTasks({ crashLimit: 3 })).toEqual(NOTHING);
    });
  });
}
