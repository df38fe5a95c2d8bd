import { describe, expect, it } from 'vitest';
import type { FailureKind, ProviderFailure } from '../../src/core/failure.js';
import { type EndedCall, Guard, type GuardReport } from '../../src/engine/guard.js';

type Call = EndedCall & { readonly name: string };

function failed(name: string, kind: FailureKind = 'invalid_request', message = 'no such parameter'): Call {
  const failure: ProviderFailure = { kind, message, httpStatus: 400 };
  return { name, failure, isAnswered: false };
}

function answered(name: string): Call {
  return { name, failure: null, isAnswered: true };
}

function throttled(name: string): Call {
  const failure: ProviderFailure = { kind: 'rate_limited', message: 'slow down' };
  return { name, failure, isAnswered: false };
}

const names = (calls: readonly Call[]): string => calls.map((call) => call.name).join('');

/** A call that was let go and has ended. */
function end(guard: Guard<Call>, call: Call, open = 0): GuardReport<Call> {
  void guard.cleared();
  return guard.add(call, open);
}

function series(
  guard: Guard<Call>,
  calls: number,
  make: (call: number) => Call,
  open = 0,
): GuardReport<Call> {
  let last: GuardReport<Call> = { settle: [], giveBack: [], convicted: null };
  for (let call = 0; call < calls; call += 1) last = end(guard, make(call), open);
  return last;
}

describe('the first calls of a run', () => {
  it('that all fail in the same way stop it after twenty, and their documents stay untouched', () => {
    const guard = new Guard<Call>(true);
    expect(series(guard, 19, () => failed('x'))).toEqual({ settle: [], giveBack: [], convicted: null });
    const { giveBack, convicted } = end(guard, failed('e'), 0);
    expect(giveBack).toHaveLength(20);
    expect(convicted).toMatchObject({
      calls: 20,
      example: { name: 'e' },
      failure: { kind: 'invalid_request' },
    });
    expect(names(end(guard, failed('f'), 0).giveBack)).toBe('f');
  });

  it('are twenty at most before one is answered, and wait for those that are still open', async () => {
    const guard = new Guard<Call>(true);
    let cleared = 0;
    const count = (): void => {
      cleared += 1;
    };
    const calls = Array.from({ length: 30 }, () => guard.cleared().then(count));
    await Promise.all(calls.slice(0, 20));
    for (let open = 19; open > 0; open -= 1) expect(guard.add(failed('a'), open).convicted).toBeNull();
    await Promise.resolve();
    expect(cleared).toBe(20);
    expect(guard.add(answered('f'), 0).settle).toHaveLength(20);
    await Promise.all(calls);
    expect(names(guard.add(failed('g'), 0).settle)).toBe('g');
  });

  it('make room for another when they say nothing of the run', async () => {
    const guard = new Guard<Call>(true);
    const calls = Array.from({ length: 21 }, () => guard.cleared());
    guard.add(throttled('a'), 19);
    await Promise.all(calls);
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
    end(guard, failed('a'), 0);
    expect(names(end(guard, failed('b', 'invalid_request', 'bad image'), 0).settle)).toBe('ab');
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
        expect(names(end(guard, failed('x', kind, `text ${call}, its own`), 0).settle)).toBe('x');
      }
      const { settle, giveBack, convicted } = end(guard, failed('y', kind), 0);
      expect([names(settle), names(giveBack), convicted?.calls]).toEqual(['y', '', 20]);
    },
  );

  it('that are throttled say nothing and are given back at once', () => {
    const guard = new Guard<Call>(true);
    expect(names(end(guard, throttled('a'), 0).settle)).toBe('a');
    expect(guard.isWatching).toBe(true);
  });

  it('are judged by five where nothing more can come, and settled as they were judged where there are fewer', () => {
    const few = new Guard<Call>(true);
    series(few, 4, () => failed('a'));
    expect(names(few.idle(true).settle)).toBe('aaaa');
    expect(few.held).toEqual([]);
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
    end(guard, answered('a'), 0);
    expect(series(guard, 99, () => failed('x', 'truncated'), 8).convicted).toBeNull();
    const { settle, convicted } = end(guard, failed('y', 'truncated'), 8);
    expect([names(settle), convicted?.calls]).toEqual(['y', 100]);
  });

  it('that cost nothing, or are answered in between, do not', () => {
    const guard = new Guard<Call>(true);
    end(guard, answered('a'), 0);
    expect(series(guard, 300, () => failed('x', 'invalid_request')).convicted).toBeNull();
    expect(series(guard, 99, () => failed('x', 'refused')).convicted).toBeNull();
    end(guard, answered('b'), 0);
    expect(series(guard, 99, () => failed('x', 'refused')).convicted).toBeNull();
  });
});
