/** The calls that are with servers, each of which can be cut off. */
import type { EndSignal } from '../core/clock.js';

export class OpenCalls {
  readonly #calls = new Set<CutOff>();
  #areCut = false;

  get size(): number {
    return this.#calls.size;
  }

  /** @returns what cuts this one off; it has done so already where all were */
  begin(): CutOff {
    const call = new CutOff();
    if (this.#areCut) call.cut();
    this.#calls.add(call);
    return call;
  }

  end(call: CutOff): void {
    this.#calls.delete(call);
  }

  /** Cuts off those that are open, and each that is begun from now on. */
  cut(): void {
    this.#areCut = true;
    for (const call of this.#calls) call.cut();
  }
}

/** Of one call. */
class CutOff implements EndSignal {
  aborted = false;
  readonly #listeners = new Set<() => void>();

  cut(): void {
    this.aborted = true;
    for (const listener of this.#listeners) listener();
  }

  addEventListener(_: 'abort', listener: () => void): void {
    this.#listeners.add(listener);
  }

  removeEventListener(_: 'abort', listener: () => void): void {
    this.#listeners.delete(listener);
  }
}
