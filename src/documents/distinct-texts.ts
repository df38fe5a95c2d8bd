/** Tells texts apart without keeping them. */

const FIRST_SLOTS = 1 << 13;
/** Fuller tables take longer to search. */
const FULLEST = 0.5;
const BLOCK_SHIFT = 16;
const BLOCK_LENGTH = 1 << BLOCK_SHIFT;
const IN_BLOCK = BLOCK_LENGTH - 1;

/**
 * Numbers different texts in the order in which they first come: 0, 1, 2, … It knows hashes of 53 bits alone and takes
 * about 16 bytes a text, whatever its length: slots that hold numbers, and the hashes by number in blocks, so that
 * growing copies slots alone. Two texts among a million meet in one hash with a chance of 1 in 18,000.
 */
export class DistinctTexts {
  #slots = new Uint32Array(FIRST_SLOTS);
  readonly #hashes: Float64Array[] = [];
  #count = 0;

  /** How many there are; the number that the next new text gets. */
  get count(): number {
    return this.#count;
  }

  /** @param hash of the text, as `hash53` gives it */
  numberOf(hash: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let slot = (hash % 0x1_0000_0000) & mask;
    // Open addressing; a 0 marks a free slot.
    for (let entry = slots[slot] as number; entry !== 0; entry = slots[slot] as number) {
      if (this.#hashOf(entry - 1) === hash) return entry - 1;
      slot = (slot + 1) & mask;
    }
    const number = this.#count;
    if ((number & IN_BLOCK) === 0) this.#hashes.push(new Float64Array(BLOCK_LENGTH));
    (this.#hashes[number >>> BLOCK_SHIFT] as Float64Array)[number & IN_BLOCK] = hash;
    this.#count += 1;
    slots[slot] = this.#count;
    if (this.#count >= slots.length * FULLEST) this.#grow();
    return number;
  }

  /** What it takes now. */
  get bytes(): number {
    return this.#slots.byteLength + this.#hashes.length * BLOCK_LENGTH * Float64Array.BYTES_PER_ELEMENT;
  }

  #grow(): void {
    const slots = new Uint32Array(this.#slots.length * 2);
    const mask = slots.length - 1;
    for (let number = 0; number < this.#count; number += 1) {
      let slot = (this.#hashOf(number) % 0x1_0000_0000) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = number + 1;
    }
    this.#slots = slots;
  }

  #hashOf(number: number): number {
    return (this.#hashes[number >>> BLOCK_SHIFT] as Float64Array)[number & IN_BLOCK] as number;
  }
}

/** A whole number below 2^32 for each of 0, 1, 2, …, in blocks, so that growing copies nothing. What was not set is 0. */
export class NumberBlocks {
  readonly #blocks: Uint32Array[] = [];

  set(index: number, value: number): void {
    const block = index >>> BLOCK_SHIFT;
    while (this.#blocks.length <= block) this.#blocks.push(new Uint32Array(BLOCK_LENGTH));
    (this.#blocks[block] as Uint32Array)[index & IN_BLOCK] = value;
  }

  at(index: number): number {
    return this.#blocks[index >>> BLOCK_SHIFT]?.[index & IN_BLOCK] ?? 0;
  }

  get bytes(): number {
    return this.#blocks.length * BLOCK_LENGTH * Uint32Array.BYTES_PER_ELEMENT;
  }
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
