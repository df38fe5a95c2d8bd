import { describe, expect, it } from 'vitest';
import type { FailureKind, ProviderFailure } from '../../src/core/failure.js';
import { type EndedCall, Guard, type GuardReport } from '../../src/engine/guard.js';

type Call = EndedCall & { readonly name: string };

function failed(name: string, kind: FailureKind = 'invalid_request', message = 'no such parameter'): Call {
  const failure: ProviderFailure = { kind, message, httpStatus: 400 };
  return { name, failure, outcome: { action: 'failed' } };
}

function answered(name: string): Call {
  return { name, failure: null, outcome: { action: 'completed' } };
}

function throttled(name: string): Call {
  const failure: ProviderFailure = { kind: 'rate_limited', message: 'slow down' };
  return { name, failure, outcome: { action: 'released' } };
}

const names = (calls: readonly Call[]): string => calls.map((call) => call.name).join('');

function series(
  guard: Guard<Call>,
  calls: number,
  make: (call: number) => Call,
  open = 0,
): GuardReport<Call> {
  let last: GuardReport<Call> = { settle: [], giveBack: [], convicted: null };
  for (let call = 0; call < calls; call += 1) last = guard.add(make(call), open);
  return last;
}

describe('the first calls of a run', () => {
  it('that all fail in the same way stop it after twenty, and their documents stay untouched', () => {
    const guard = new Guard<Call>(true);
    expect(series(guard, 19, () => failed('x'))).toEqual({ settle: [], giveBack: [], convicted: null });
    const { giveBack, convicted } = guard.add(failed('e'), 0);
    expect(giveBack).toHaveLength(20);
    expect(convicted).toMatchObject({
      calls: 20,
      example: { name: 'e' },
      failure: { kind: 'invalid_request' },
    });
    expect(names(guard.add(failed('f'), 0).giveBack)).toBe('f');
  });

  it('wait for the calls that are still open: refusals come back faster than answers', async () => {
    const guard = new Guard<Call>(true);
    expect(series(guard, 20, () => failed('a'), 1).convicted).toBeNull();
    let cleared = false;
    const waiting = guard.cleared().then(() => {
      cleared = true;
    });
    await Promise.resolve();
    expect(cleared).toBe(false);
    expect(guard.add(answered('f'), 0).settle).toHaveLength(21);
    await waiting;
    expect(names(guard.add(failed('g'), 0).settle)).toBe('g');
  });

  it('convict when the last open call comes back with no evidence of its own', () => {
    const guard = new Guard<Call>(true);
    series(guard, 20, () => failed('a'), 1);
    const { settle, giveBack, convicted } = guard.add(throttled('f'), 0);
    expect([names(settle), giveBack.length]).toEqual(['f', 20]);
    expect(convicted).not.toBeNull();
  });

  it('that fail in different ways are the documents’ own fault', () => {
    const guard = new Guard<Call>(true);
    guard.add(failed('a'), 0);
    expect(names(guard.add(failed('b', 'invalid_request', 'bad image'), 0).settle)).toBe('ab');
  });

  it('are of one sort though each names another number', () => {
    const guard = new Guard<Call>(true);
    const tooLong = (call: number): Call => failed('x', 'too_large', `try ${call}`);
    expect(series(guard, 20, tooLong).convicted).not.toBeNull();
  });

  it('are of one sort whatever the server does instead of answering', () => {
    const guard = new Guard<Call>(true);
    const kinds = ['network', 'overloaded', 'timeout'] as const;
    const trouble = (call: number): Call => failed('x', kinds[call % 3], 'gone');
    expect(series(guard, 20, trouble).convicted).not.toBeNull();
  });

  it.each(['bad_output', 'refused', 'content_filtered', 'truncated'] as const)(
    'that are paid for and end as %s stop it too, and what was paid for is kept as it was judged',
    (kind) => {
      const guard = new Guard<Call>(true);
      for (let call = 1; call < 20; call += 1) {
        expect(names(guard.add(failed('x', kind, `text ${call}, its own`), 0).settle)).toBe('x');
      }
      const { settle, giveBack, convicted } = guard.add(failed('y', kind), 0);
      expect([names(settle), names(giveBack), convicted?.calls]).toEqual(['y', '', 20]);
    },
  );

  it('that are throttled say nothing and are given back at once', () => {
    const guard = new Guard<Call>(true);
    expect(names(guard.add(throttled('a'), 0).settle)).toBe('a');
    expect(guard.isWatching).toBe(true);
  });

  it('are judged by five where nothing more can come, and settled as they were judged where there are fewer', () => {
    const few = new Guard<Call>(true);
    series(few, 4, () => failed('a'));
    expect(names(few.idle(true).settle)).toBe('aaaa');
    expect(few.heldCount).toBe(0);
    const enough = new Guard<Call>(true);
    series(enough, 5, () => failed('a'));
    expect(enough.idle(true)).toMatchObject({ convicted: { calls: 5 }, settle: [] });
  });

  it('convict nobody when the user stops the run before they are enough', () => {
    const guard = new Guard<Call>(true);
    series(guard, 12, () => failed('a'));
    expect(guard.idle(false)).toMatchObject({ convicted: null, giveBack: [] });
  });

  it('are not watched when the guard is off', () => {
    const guard = new Guard<Call>(false);
    expect(names(series(guard, 200, () => failed('x', 'truncated')).settle)).toBe('x');
    expect(guard.isWatching).toBe(false);
  });
});

describe('later calls', () => {
  it('that are paid for and end in one way a hundred times in a row stop the run', () => {
    const guard = new Guard<Call>(true);
    guard.add(answered('a'), 0);
    expect(series(guard, 99, () => failed('x', 'truncated'), 8).convicted).toBeNull();
    const { settle, convicted } = guard.add(failed('y', 'truncated'), 8);
    expect([names(settle), convicted?.calls]).toEqual(['y', 100]);
  });

  it('that cost nothing, or are answered in between, do not', () => {
    const guard = new Guard<Call>(true);
    guard.add(answered('a'), 0);
    expect(series(guard, 300, () => failed('x', 'invalid_request')).convicted).toBeNull();
    expect(series(guard, 99, () => failed('x', 'refused')).convicted).toBeNull();
    guard.add(answered('b'), 0);
    expect(series(guard, 99, () => failed('x', 'refused')).convicted).toBeNull();
  });
});
