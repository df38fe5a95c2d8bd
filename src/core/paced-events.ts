/** A storm of refusals is one fact, not a thousand lines; so is what this machine is short of. */
import type { Clock } from './clock.js';
import type { RunEvent, TellEvent } from './event.js';

const TOLD_EVERY_MS: Readonly<Partial<Record<RunEvent['type'], number>>> = {
  throttled: 10_000,
  machine_short: 60_000,
};

/**
 * Passes on of each of these the first, and the next one after a while; of everything else all.
 * @param verbose each refusal as well
 */
export function pacedEvents(tell: TellEvent, clock: Clock, verbose: boolean): TellEvent {
  const lastMs = new Map<RunEvent['type'], number>();
  return (event) => {
    const everyMs = TOLD_EVERY_MS[event.type];
    if (everyMs !== undefined && !(verbose && event.type === 'throttled')) {
      const nowMs = clock.monotonicMs();
      if (nowMs - (lastMs.get(event.type) ?? Number.NEGATIVE_INFINITY) < everyMs) return;
      lastMs.set(event.type, nowMs);
    }
    tell(event);
  };
}
