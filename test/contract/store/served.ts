/** Tasks that are handed in over HTTP: what is asked of every backend. */
import { describe, expect, it } from 'vitest';
import type { Settlement } from '../../../src/core/outcome.js';
import type { NewServedTask } from '../../../src/core/served-task.js';
import type { LeasedTask } from '../../../src/core/task.js';
import type { Store } from '../../../src/store/store.js';
import { callEnd, claim, claimOne, completed, failed, openRun, results, startCall } from './builders.js';
import type { StoreOf } from './store-of.js';

const HOUR_MS = 3_600_000;
const ROOM = { mostOpen: 1_000, ttlMs: HOUR_MS };
const HOOK = 'https://receiver.example/hook';

function served(number: number, change: Partial<NewServedTask> = {}): NewServedTask {
  return {
    ...{ publicId: `task_${number}`, requestHash: `request-${number}`, priority: 0 },
    ...{ body: `{"text":"document ${number}"}`, metadataJson: null, idempotency: null },
    ...{ maxAttempts: null, webhookUrl: null, traceparent: null },
    ...change,
  };
}

const key = (name: string, body = 'body') => ({ idempotency: { key: name, bodyHash: body } });

async function servedRun(store: Store, name = 'served'): Promise<number> {
  const runId = await openRun(store, [], name);
  await store.served.adoptRun(runId, false);
  return runId;
}

async function end(
  store: Store,
  runId: number,
  settle: (task: LeasedTask) => Settlement = (task) => completed(task),
): Promise<void> {
  const task = await claimOne(store, runId);
  await store.record([], [settle(task)]);
}

export function servedContract(storeOf: StoreOf): void {
  describe('tasks that are handed in one by one', () => {
    it('are drained, found and read like any other, by their public id', async () => {
      const store = await storeOf();
      const runId = await servedRun(store);
      const tasks = [served(1, { metadataJson: '{"a":1}' }), served(2, { priority: 5 })];
      expect(await store.served.submit(runId, tasks, ROOM)).toEqual([
        { type: 'accepted' },
        { type: 'accepted' },
      ]);
      expect(await store.served.find('task_1')).toMatchObject({ runId, state: 'ready', publicId: 'task_1' });
      expect((await store.summarizeRun(runId)).counts.ready).toBe(2);

      const [first] = await claim(store, runId, 1);
      expect(first).toMatchObject({ key: 'task_2', body: '{"text":"document 2"}' });
      await end(store, runId);
      expect((await store.served.find('task_1'))?.state).toBe('completed');
      expect(await results(store, runId)).toMatchObject([{ key: 'task_1', metadataJson: '{"a":1}' }]);
      expect(await store.served.find('task_3')).toBeNull();
      expect(await store.maintenance.recount()).toEqual([]);
    });

    it('have their own bound on attempts and their trace with them when they are claimed', async () => {
      const store = await storeOf();
      const runId = await servedRun(store);
      await store.served.submit(
        runId,
        [served(1, { maxAttempts: 2, traceparent: '00-trace' }), served(2)],
        ROOM,
      );
      const [first, second] = await claim(store, runId, 2);
      expect(first).toMatchObject({ maxAttempts: 2, traceparent: '00-trace' });
      expect(second).not.toHaveProperty('maxAttempts');
    });

    it('open the finished run of theirs again, and are refused by one that was cancelled', async () => {
      const store = await storeOf();
      const runId = await servedRun(store);
      await store.updateRun(runId, { status: 'finished' });
      await store.served.submit(runId, [served(1)], ROOM);
      expect((await store.listRuns())[0]?.status).toBe('open');
      await store.cancelRun(runId);
      await expect(store.served.submit(runId, [served(2)], ROOM)).rejects.toMatchObject({
        code: 'RUN_CANCELLED',
      });
    });

    it('are one task for one idempotency key, within a page and ever after; another body is told apart', async () => {
      const store = await storeOf();
      const runId = await servedRun(store);
      const page = [served(1, key('a')), served(2, key('a')), served(3, key('a', 'other'))];
      const repeated = { type: 'repeated', publicId: 'task_1' };
      expect(await store.served.submit(runId, page, ROOM)).toEqual([
        { type: 'accepted' },
        repeated,
        { type: 'conflict' },
      ]);
      const again = await storeOf.again();
      expect(await again.served.submit(runId, [served(4, key('a'))], ROOM)).toEqual([repeated]);
      expect((await store.summarizeRun(runId)).counts.ready).toBe(1);
    });

    it('are taken as long as there is room, a repeated one always', async () => {
      const store = await storeOf();
      const runId = await servedRun(store);
      const few = { ...ROOM, mostOpen: 2 };
      const page = [served(1, key('a')), served(2), served(3)];
      expect((await store.served.submit(runId, page, few)).at(-1)).toEqual({ type: 'backlog_full' });
      expect(await store.served.submit(runId, [served(4, key('a'))], few)).toMatchObject([
        { type: 'repeated' },
      ]);
      await end(store, runId);
      expect(await store.served.submit(runId, [served(5)], few)).toEqual([{ type: 'accepted' }]);
    });

    it('are cancelled once, and what a worker brings of one then is dropped', async () => {
      const store = await storeOf();
      const runId = await servedRun(store);
      await store.served.submit(runId, [served(1)], ROOM);
      const task = await claimOne(store, runId);
      expect(await store.served.cancel('task_1')).toBe(true);
      expect(await store.served.cancel('task_1')).toBe(false);
      expect((await store.record([], [completed(task)])).lostTaskIds).toEqual([task.taskId]);
      expect((await store.served.find('task_1'))?.state).toBe('cancelled');
    });
  });

  describe('runs that are handed in whole', () => {
    it('are open once all is there, one for an idempotency key, which tasks know as well', async () => {
      const store = await storeOf();
      const single = await servedRun(store);
      const { id } = await store.createRun({
        ...{ name: 'run_1', inputPath: '-', simulated: false, settings: {}, createdAtMs: 0 },
      });
      await store.served.adoptRun(id, true);
      const { idempotency } = key('a');
      expect(await store.served.openRun(id, 'run_1', idempotency)).toEqual({ type: 'accepted' });
      expect((await store.listRuns())[0]).toMatchObject({ name: 'run_1', status: 'open' });
      expect(await store.served.listRuns()).toEqual([
        { runId: id, isBulk: true },
        { runId: single, isBulk: false },
      ]);
      const other = await store.createRun({
        ...{ name: 'run_2', inputPath: '-', simulated: false, settings: {}, createdAtMs: 0 },
      });
      await store.served.adoptRun(other.id, true);
      const repeated = { type: 'repeated', publicId: 'run_1' };
      expect(await store.served.openRun(other.id, 'run_2', idempotency)).toEqual(repeated);
      expect(await store.served.submit(single, [served(1, key('a'))], ROOM)).toEqual([repeated]);
      expect((await store.listRuns())[0]).toMatchObject({ name: 'run_2', status: 'importing' });
    });

    it('leave their idempotency key to others once they are deleted, before anything of them is swept up', async () => {
      const store = await storeOf();
      const single = await servedRun(store);
      const { idempotency } = key('a');
      const handedIn = async (name: string): Promise<number> => {
        const { id } = await store.createRun({
          ...{ name, inputPath: '-', simulated: false, settings: {}, createdAtMs: 0 },
        });
        await store.served.adoptRun(id, true);
        expect(await store.served.openRun(id, name, idempotency)).toEqual({ type: 'accepted' });
        return id;
      };
      await store.deleteRun(await handedIn('run_1'));
      await store.deleteRun(await handedIn('run_2'));
      expect(await store.served.submit(single, [served(1, key('a'))], ROOM)).toEqual([{ type: 'accepted' }]);
    });
  });

  describe('the outbox', () => {
    it('has a message as soon as a task has ended, whatever ended it, and none for one that nobody is told of', async () => {
      const store = await storeOf();
      const runId = await servedRun(store);
      const webhookUrl = HOOK;
      const tasks = [1, 2, 3, 4].map((number) => served(number, number === 4 ? {} : { webhookUrl }));
      await store.served.submit(runId, tasks, ROOM);
      expect(await store.served.nextWebhookMs()).toBeNull();
      await end(store, runId);
      expect(await store.served.nextWebhookMs()).toBe(0);
      await end(store, runId, (task) => failed(task));
      await store.served.cancel('task_3');
      await store.served.cancel('task_4');
      const messages = await store.served.takeWebhooks(10, 1_000);
      expect(messages.map(({ publicId, url, attempts }) => [publicId, url, attempts])).toEqual(
        [1, 2, 3].map((number) => [`task_${number}`, HOOK, 0]),
      );
      expect(new Set(messages.map(({ messageId }) => messageId)).size).toBe(3);
      for (const { messageId } of messages) expect(messageId).toMatch(/^msg_\w{32}$/);
    });

    it('gives a message to one who asks, and again when he has not said what came of it', async () => {
      const store = await storeOf();
      const runId = await servedRun(store);
      await store.served.submit(runId, [served(1, { webhookUrl: HOOK })], ROOM);
      await end(store, runId);
      const [message] = await store.served.takeWebhooks(10, 1_000);
      expect(await (await storeOf.again()).served.takeWebhooks(10, 1_000)).toEqual([]);
      await storeOf.passTime(1_001);
      expect(await store.served.takeWebhooks(10, 1_000)).toEqual([{ ...message, attempts: 1 }]);
    });

    it('keeps what came of a try: delivered, to be tried later, given up, and sent again when somebody wants it', async () => {
      const store = await storeOf();
      const runId = await servedRun(store);
      const tasks = [1, 2, 3].map((number) => served(number, { webhookUrl: `${HOOK}/${number}` }));
      await store.served.submit(runId, tasks, ROOM);
      for (const _ of tasks) await end(store, runId);
      const [one, two, three] = await store.served.takeWebhooks(10, 60_000);
      if (one === undefined || two === undefined || three === undefined) throw new Error('three were due');
      await store.served.noteWebhooks([
        { ...one, outcome: 'delivered', httpStatus: 204, problem: null },
        { ...two, outcome: { againInMs: 5_000 }, httpStatus: 500, problem: 'answered 500' },
        { ...three, outcome: 'parked', httpStatus: null, problem: 'no connection' },
      ]);
      expect(await store.served.countWebhooks()).toEqual({ due: 1, delivered: 1, parked: 1 });
      await storeOf.passTime(5_001);
      expect(await store.served.takeWebhooks(10, 60_000)).toEqual([{ ...two, attempts: 1 }]);
      expect(await store.served.listWebhooks(0, 10)).toMatchObject([
        { publicId: 'task_3', state: 'parked', problem: 'no connection', attempts: 1, url: `${HOOK}/3` },
      ]);
      expect(await store.served.retryWebhooks('task_1')).toBe(0);
      expect(await store.served.retryWebhooks(null)).toBe(1);
      expect(await store.served.takeWebhooks(10, 60_000)).toEqual([{ ...three, attempts: 0 }]);
    });

    it('gives up all that waits for an address that is gone, and no other', async () => {
      const store = await storeOf();
      const runId = await servedRun(store);
      const urls = [HOOK, HOOK, `${HOOK}/other`];
      await store.served.submit(
        runId,
        urls.map((webhookUrl, number) => served(number, { webhookUrl })),
        ROOM,
      );
      for (const _ of urls) await end(store, runId);
      const [first] = await store.served.takeWebhooks(1, 60_000);
      if (first === undefined) throw new Error('one was due');
      await store.served.noteWebhooks([{ ...first, outcome: 'gone', httpStatus: 410, problem: 'gone' }]);
      expect((await store.served.listWebhooks(0, 10)).map(({ publicId }) => publicId)).toEqual([
        'task_0',
        'task_1',
      ]);
      expect(await store.served.takeWebhooks(9, 60_000)).toMatchObject([{ publicId: 'task_2' }]);
    });

    it('has another message when a task that was retried ends again, and what came of the old one is nothing to it', async () => {
      const store = await storeOf();
      const runId = await servedRun(store);
      await store.served.submit(runId, [served(1, { webhookUrl: HOOK })], ROOM);
      await end(store, runId, (task) => failed(task));
      const [before] = await store.served.takeWebhooks(1, 60_000);
      if (before === undefined) throw new Error('one was due');
      expect(await store.retryTasks(runId, { key: 'task_1' })).toBe(1);
      await end(store, runId);
      await store.served.noteWebhooks([{ ...before, outcome: 'delivered', httpStatus: 200, problem: null }]);
      const [after] = await store.served.takeWebhooks(1, 60_000);
      expect(after).toMatchObject({ publicId: 'task_1', attempts: 0 });
      expect(after?.messageId).not.toBe(before.messageId);
    });
  });

  describe('what has lived its time', () => {
    async function expireAll(store: Store): Promise<void> {
      let cursor: string | null = null;
      do cursor = await store.served.expire(HOUR_MS, cursor, 2);
      while (cursor !== null);
    }

    it('is gone with its result, its message and its calls, page by page; what is open or younger stays', async () => {
      const store = await storeOf();
      const runId = await servedRun(store);
      const kept = await openRun(store, [], 'kept');
      const tasks = [1, 2, 3, 4, 5].map((number) =>
        served(number, { webhookUrl: HOOK, ...key(`key-${number}`) }),
      );
      await store.served.submit(runId, tasks, ROOM);
      for (let number = 1; number <= 4; number += 1) {
        const task = await claimOne(store, runId);
        const callId = await startCall(store, runId, task);
        const young = number === 4 ? HOUR_MS : 0;
        const settlement = completed(
          task,
          callEnd(callId, { finishedAtMs: callEnd(0).finishedAtMs + young }),
        );
        const outcomes = settlement.outcomes.map((outcome) =>
          'atMs' in outcome ? { ...outcome, atMs: outcome.atMs + young } : outcome,
        );
        await store.record([], [{ ...settlement, outcomes }]);
      }
      await storeOf.passTime(HOUR_MS + 10_000);
      await expireAll(store);
      const left = await Promise.all([1, 2, 3, 4, 5].map((number) => store.served.find(`task_${number}`)));
      expect(left.map((task) => task?.state ?? null)).toEqual([null, null, null, 'completed', 'ready']);
      expect((await store.summarizeRun(runId)).counts).toMatchObject({ completed: 1, ready: 1 });
      expect(await store.served.countWebhooks()).toMatchObject({ due: 1 });
      expect((await store.readRecentCalls(10 * HOUR_MS)).length).toBe(1);
      expect(await store.served.submit(runId, [served(9, key('key-1'))], ROOM)).toEqual([
        { type: 'accepted' },
      ]);
      expect(await store.maintenance.recount()).toEqual([]);
      expect((await store.listRuns()).map(({ id }) => id)).toContain(kept);
    });

    it('goes with its run when that is deleted', async () => {
      const store = await storeOf();
      const runId = await servedRun(store);
      await store.served.submit(runId, [served(1, { webhookUrl: HOOK })], ROOM);
      await end(store, runId);
      await store.deleteRun(runId);
      expect(await store.served.find('task_1')).toBeNull();
      expect(await store.served.listRuns()).toEqual([]);
      let cursor: string | null = null;
      do cursor = await store.maintenance.sweepDeletedRuns(cursor, 100);
      while (cursor !== null);
      expect(await store.served.nextWebhookMs()).toBeNull();
    });
  });
}
