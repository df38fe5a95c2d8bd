/** The size of groups, against servers of every speed. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { GroupSize } from '../../src/engine/group-size.js';

const bounds = fc
  .record({
    fewest: fc.integer({ min: 1, max: 50 }),
    more: fc.integer({ min: 0, max: 400 }),
    targetLatencyMs: fc.integer({ min: 100, max: 20_000 }),
  })
  .map(({ fewest, more, targetLatencyMs }) => ({ fewest, most: fewest + more, targetLatencyMs }));
const server = fc.record({
  baseMs: fc.integer({ min: 0, max: 2_000 }),
  eachMs: fc.double({ min: 0, max: 200, noNaN: true }),
});

it('settles for good on a server whose calls take a base and a share for each document', () => {
  fc.assert(
    fc.property(bounds, server, fc.integer({ min: 1, max: 8 }), (within, { baseMs, eachMs }, openCalls) => {
      const size = new GroupSize(within);
      const sizes: number[] = [];
      // Calls that are open together were packed at the size of that time.
      for (let round = 0; round < 60; round += 1) {
        const { documents } = size;
        for (let call = 0; call < openCalls; call += 1) size.answered(documents, baseMs + eachMs * documents);
        sizes.push(size.documents);
      }
      const last = sizes.at(-1) ?? 0;
      expect(sizes.every((each) => each >= within.fewest && each <= within.most)).toBe(true);
      expect(new Set(sizes.slice(-20)).size).toBe(1);
      // Never back: what grew to a size does not shrink from it, on a server that is always alike.
      expect(sizes).toEqual(sizes.toSorted((one, other) => one - other));
      const share = (baseMs + eachMs * last) / within.targetLatencyMs;
      expect(share >= 0.3 - 1e-9 || last === within.most).toBe(true);
      expect(share <= 0.8 + 1e-9 || last === within.fewest).toBe(true);
    }),
  );
});

it('stays within its bounds whatever happens, and comes down where calls become slow', () => {
  const event = fc.oneof(
    fc.record({ type: fc.constant('answered' as const), latencyMs: fc.integer({ min: 0, max: 100_000 }) }),
    fc.record({ type: fc.constantFrom('timedOut' as const, 'refusedAsTooLarge' as const) }),
  );
  fc.assert(
    fc.property(bounds, fc.array(event, { maxLength: 200 }), (within, events) => {
      const size = new GroupSize(within);
      for (const each of events) {
        if (each.type === 'answered') size.answered(size.documents, each.latencyMs);
        else size[each.type](size.documents);
        expect(size.documents).toBeGreaterThanOrEqual(within.fewest);
        expect(size.documents).toBeLessThanOrEqual(within.most);
      }
      for (let call = 0; call < 100; call += 1) size.answered(size.documents, within.targetLatencyMs * 2);
      expect(size.documents).toBe(within.fewest);
    }),
  );
});
