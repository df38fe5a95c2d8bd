/** Tells repeats of a key apart without keeping the keys. */

const FIRST_CAPACITY = 1 << 12;
const FULLEST = 0.75;

/**
 * Counts how often each key has come, in about 20 bytes a key, whatever the key's length: an open-addressing table
 * of 53-bit hashes. Two keys among a million meet in one hash with a chance of 1 in 18,000; the second then gets
 * occurrence 1 instead of 0, which is still unique and the same at every run of the same file.
 */
export class OccurrenceCounter {
  #hashes = new Float64Array(FIRST_CAPACITY);
  #counts = new Uint32Array(FIRST_CAPACITY);
  #used = 0;

  /** 0 for the first time a key comes, 1 for the second, … */
  next(key: string): number {
    if (this.#used >= this.#hashes.length * FULLEST) this.#grow();
    const hash = hash53(key);
    const slot = findSlot(this.#hashes, this.#counts, hash);
    const occurrence = this.#counts[slot] as number;
    if (occurrence === 0) {
      this.#hashes[slot] = hash;
      this.#used += 1;
    }
    this.#counts[slot] = occurrence + 1;
    return occurrence;
  }

  /** What the table takes now. */
  get bytes(): number {
    return this.#hashes.byteLength + this.#counts.byteLength;
  }

  #grow(): void {
    const hashes = new Float64Array(this.#hashes.length * 2);
    const counts = new Uint32Array(hashes.length);
    for (let slot = 0; slot < this.#hashes.length; slot += 1) {
      const count = this.#counts[slot] as number;
      if (count === 0) continue;
      const hash = this.#hashes[slot] as number;
      const target = findSlot(hashes, counts, hash);
      hashes[target] = hash;
      counts[target] = count;
    }
    this.#hashes = hashes;
    this.#counts = counts;
  }
}

/** The slot that holds `hash`, or the free one where it belongs. A count of 0 marks a free slot. */
function findSlot(hashes: Float64Array, counts: Uint32Array, hash: number): number {
  const mask = hashes.length - 1;
  let slot = (hash % 0x1_0000_0000) & mask;
  while (counts[slot] !== 0 && hashes[slot] !== hash) slot = (slot + 1) & mask;
  return slot;
}

/** Two multiplicative hashes over the UTF-16 units, mixed as MurmurHash3 finishes; 53 bits fit a double. */
export function hash53(text: string): number {
  let low = 0x9e3779b9;
  let high = 0x85ebca6b;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    low = Math.imul(low ^ unit, 0x01000193);
    high = Math.imul(high ^ unit, 0x5bd1e995);
    high ^= high >>> 15;
  }
  low = finish(low ^ text.length);
  high = finish(high ^ low);
  return (high >>> 11) * 0x1_0000_0000 + (low >>> 0);
}

function finish(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
