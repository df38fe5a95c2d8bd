/**
 * Work on hostile input that may never come to an end, such as a schema's pattern that backtracks. The runtime cuts it
 * off, even inside a regular expression. A thread of its own could do the same, but every answer would have to be copied
 * there and back; a safe engine (RE2) takes other patterns than JSON Schema's (ECMA-262, with look-ahead).
 */

import { createContext, Script } from 'node:vm';
import { nextTurn } from '../core/clock.js';

/** Half a second of what is a matter of milliseconds, so that a signal is heard within one. */
const MOST_MS = 500;

export class TimeLimitPassed extends Error {}

/**
 * @returns runs work, one after the other, each in a turn of the event loop of its own: signals are heard in between.
 *   Rejects with TimeLimitPassed for what took longer than half a second, with the work's own error else.
 */
export function createTimeLimit(): <Result>(work: () => Result) => Promise<Result> {
  const script = new Script('work()');
  let lastTurn: Promise<unknown> = Promise.resolve();
  return (work) => {
    const turn = lastTurn.then(async () => {
      await nextTurn();
      try {
        return script.runInContext(createContext({ work }), { timeout: MOST_MS });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
        throw new TimeLimitPassed(`that took longer than ${MOST_MS} ms`);
      }
    });
    lastTurn = turn.catch(() => undefined);
    return turn;
  };
}
