/** The calls that are with servers, each of which can be cut off. */
import type { EndSignal } from '../core/clock.js';

export class OpenCalls {
  readonly #calls = new Set<OpenCall>();
  #areCut = false;

  get size(): number {
    return this.#calls.size;
  }

  /** @returns what cuts this one off; it has done so already where all were */
  begin(): OpenCall {
    const call = new OpenCall();
    if (this.#areCut) call.cut();
    this.#calls.add(call);
    return call;
  }

  end(call: OpenCall): void {
    this.#calls.delete(call);
  }

  /** Cuts off those that are open, and each that is begun from now on. */
  cut(): void {
    this.#areCut = true;
    for (const call of this.#calls) call.cut();
  }
}

export class OpenCall implements EndSignal {
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
