/** Tells repeats of a key apart without keeping the keys. */
import { DistinctTexts, hash53, NumberBlocks } from './distinct-texts.js';

/**
 * Counts how often each key has come, in about 20 bytes a key, whatever the key's length. Where two keys meet in one
 * hash, the second gets occurrence 1 instead of 0, which is still unique and the same at every run of the same file.
 */
export class OccurrenceCounter {
  readonly #keys = new DistinctTexts();
  readonly #counts = new NumberBlocks();

  /** 0 for the first time a key comes, 1 for the second, … */
  next(key: string): number {
    const number = this.#keys.numberOf(hash53(key));
    const occurrence = this.#counts.at(number);
    this.#counts.set(number, occurrence + 1);
    return occurrence;
  }

  /** What the table takes now. */
  get bytes(): number {
    return this.#keys.bytes + this.#counts.bytes;
  }
}
