/** How values are spread, without keeping them: token counts repeat, so counting each is enough for a million. */

export interface Figures {
  readonly p50: number;
  readonly p95: number;
  readonly max: number;
}

export class Distribution {
  readonly #times = new Map<number, number>();
  #count = 0;

  add(value: number): void {
    this.#times.set(value, (this.#times.get(value) ?? 0) + 1);
    this.#count += 1;
  }

  /** All zero where nothing was added. */
  figures(): Figures {
    const ascending = [...this.#times].sort(([one], [other]) => one - other);
    return {
      p50: this.#at(ascending, 0.5),
      p95: this.#at(ascending, 0.95),
      max: ascending.at(-1)?.[0] ?? 0,
    };
  }

  /** The least value that this share of all does not exceed. */
  #at(ascending: readonly (readonly [value: number, times: number])[], share: number): number {
    const rank = Math.max(1, Math.ceil(share * this.#count));
    let passed = 0;
    for (const [value, times] of ascending) {
      passed += times;
      if (passed >= rank) return value;
    }
    return 0;
  }
}
