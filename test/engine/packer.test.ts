import { describe, expect, it } from 'vitest';
import { Packer } from '../../src/engine/packer.js';
import type { PreparedTask } from '../../src/engine/prepared-task.js';
import { FakeClock } from '../support/fake-clock.js';

const BOUNDS = { mostInputs: 10, mostTokens: 100 };

function prepared(taskId: number, key: string | null = 'k', inputs = 1, tokens = 1): PreparedTask {
  return {
    task: { taskId },
    grouping: key === null ? null : { key, inputs, bounds: BOUNDS },
    cost: () => ({ requests: 1, tokens }),
  } as PreparedTask;
}

function packing(documents = 3, waitMs = 100) {
  const clock = new FakeClock();
  const groups: number[][] = [];
  const packer = new Packer({ documentsFor: () => documents, waitMs }, clock, (group) =>
    groups.push(group.map(({ task }) => task.taskId)),
  );
  return { packer, clock, groups };
}

describe('documents that may share a call', () => {
  it('leave together as soon as their group is full', () => {
    const { packer, groups } = packing();
    for (const id of [1, 2, 3, 4]) packer.add(prepared(id));
    expect(groups).toEqual([[1, 2, 3]]);
  });

  it('leave when the first of them has waited long enough, and no sooner', async () => {
    const { packer, clock, groups } = packing();
    packer.add(prepared(1));
    await clock.advance(60);
    packer.add(prepared(2));
    await clock.advance(39);
    expect(groups).toEqual([]);
    await clock.advance(1);
    expect(groups).toEqual([[1, 2]]);
  });

  it('wait anew after their group has left', async () => {
    const { packer, clock, groups } = packing(2);
    for (const id of [1, 2, 3]) packer.add(prepared(id));
    await clock.advance(99);
    expect(groups).toEqual([[1, 2]]);
    await clock.advance(1);
    expect(groups).toEqual([[1, 2], [3]]);
  });

  it('share only with those of their own key', () => {
    const { packer, groups } = packing(2);
    packer.add(prepared(1, 'a'));
    packer.add(prepared(2, 'b'));
    packer.add(prepared(3, 'a'));
    expect(groups).toEqual([[1, 3]]);
  });

  it.each([
    ['inputs', prepared(2, 'k', 10)],
    ['tokens', prepared(2, 'k', 1, 100)],
  ])('are not put into a call that would have too many %s by them', (_what, large) => {
    const { packer, groups } = packing();
    packer.add(prepared(1));
    packer.add(large);
    expect(groups).toEqual([[1]]);
    packer.flush();
    expect(groups).toEqual([[1], [2]]);
  });

  it('are asked for as long as groups are not full', () => {
    const { packer } = packing(3);
    expect(packer.room).toBe(0);
    packer.add(prepared(1, 'a'));
    expect(packer.room).toBe(2);
    packer.add(prepared(2, 'b'));
    packer.add(prepared(3, 'b'));
    expect(packer.room).toBe(3);
    packer.flush();
    expect(packer.room).toBe(0);
  });

  it('leave at once when nothing more comes', () => {
    const { packer, groups } = packing();
    packer.add(prepared(1));
    packer.flush();
    packer.flush();
    expect(groups).toEqual([[1]]);
  });
});

it('a document that shares with nobody leaves at once, and so do all where each is sent singly', () => {
  const { packer, groups } = packing();
  packer.add(prepared(1, null));
  expect(groups).toEqual([[1]]);
  const singly = packing(1);
  singly.packer.add(prepared(2));
  expect(singly.groups).toEqual([[2]]);
});
