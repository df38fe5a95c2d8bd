import { describe, expect, it } from 'vitest';
import type { FailureKind, ProviderFailure } from '../../src/core/failure.js';
import { FirstCalls, type JudgedCall } from '../../src/engine/first-calls.js';

type Call = JudgedCall & { readonly name: string };

function failed(name: string, kind: FailureKind = 'invalid_request', message = 'no such parameter'): Call {
  const failure: ProviderFailure = { kind, message, httpStatus: 400 };
  return { name, failure, outcome: { action: 'failed' } as JudgedCall['outcome'] };
}

function answered(name: string): Call {
  return { name, failure: null, outcome: { action: 'completed' } as JudgedCall['outcome'] };
}

function throttled(name: string): Call {
  const failure: ProviderFailure = { kind: 'rate_limited', message: 'slow down' };
  return { name, failure, outcome: { action: 'released' } as JudgedCall['outcome'] };
}

const names = (calls: readonly Call[]): string => calls.map((call) => call.name).join('');

describe('the first calls of a run', () => {
  it('that all fail in the same way stop it, and their documents stay untouched', () => {
    const watch = new FirstCalls<Call>(true);
    for (const name of ['a', 'b', 'c', 'd']) expect(watch.add(failed(name), 0).settle).toEqual([]);
    const { giveBack, convicted } = watch.add(failed('e'), 0);
    expect(names(giveBack)).toBe('abcde');
    expect(convicted?.message).toBe('no such parameter');
    expect(names(watch.add(failed('f'), 0).giveBack)).toBe('f');
  });

  it('wait for the calls that are still open: refusals come back faster than answers', async () => {
    const watch = new FirstCalls<Call>(true);
    for (const name of ['a', 'b', 'c', 'd', 'e']) expect(watch.add(failed(name), 1).convicted).toBeNull();
    let cleared = false;
    const waiting = watch.cleared().then(() => {
      cleared = true;
    });
    await Promise.resolve();
    expect(cleared).toBe(false);
    expect(names(watch.add(answered('f'), 0).settle)).toBe('abcdef');
    await waiting;
    expect(names(watch.add(failed('g'), 0).settle)).toBe('g');
  });

  it('convict when the last open call comes back with no evidence of its own', () => {
    const watch = new FirstCalls<Call>(true);
    for (const name of ['a', 'b', 'c', 'd', 'e']) watch.add(failed(name), 1);
    const { settle, giveBack, convicted } = watch.add(throttled('f'), 0);
    expect([names(settle), names(giveBack)]).toEqual(['f', 'abcde']);
    expect(convicted).not.toBeNull();
  });

  it('that fail in different ways are the documents’ own fault', () => {
    const watch = new FirstCalls<Call>(true);
    watch.add(failed('a'), 0);
    expect(names(watch.add(failed('b', 'invalid_request', 'bad image'), 0).settle)).toBe('ab');
  });

  it('are of one sort though each names another number', () => {
    const watch = new FirstCalls<Call>(true);
    for (let number = 1; number <= 4; number += 1) watch.add(failed('x', 'network', `try ${number}`), 0);
    expect(watch.add(failed('y', 'network', 'try 5'), 0).convicted).not.toBeNull();
  });

  it.each(['too_large', 'refused', 'content_filtered', 'truncated', 'overloaded', 'timeout'] as const)(
    'that end as %s convict nobody',
    (kind) => {
      const watch = new FirstCalls<Call>(true);
      for (let number = 0; number < 20; number += 1)
        expect(watch.add(failed('x', kind), 0).convicted).toBeNull();
      expect(watch.heldCount).toBe(0);
    },
  );

  it('that are throttled say nothing and are given back at once', () => {
    const watch = new FirstCalls<Call>(true);
    expect(names(watch.add(throttled('a'), 0).settle)).toBe('a');
  });

  it('are settled as they were judged when nothing more comes', () => {
    const watch = new FirstCalls<Call>(true);
    watch.add(failed('a'), 0);
    watch.add(failed('b'), 0);
    expect(names(watch.end())).toBe('ab');
    expect(watch.heldCount).toBe(0);
  });

  it('are not watched when the guard is off', () => {
    const watch = new FirstCalls<Call>(false);
    for (let number = 0; number < 20; number += 1) expect(names(watch.add(failed('x'), 0).settle)).toBe('x');
  });
});
