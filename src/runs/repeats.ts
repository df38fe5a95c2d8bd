/** Finds repeats in an input of any length: which line said the same first. */
import { hash53 } from '../documents/occurrence.js';

export type RepeatKind =
  /** The same key and the same request. */
  | 'repeated_document'
  /** The same key, another request: more often a mistake than meant. */
  | 'repeated_id'
  /** The same request under another key: paid for twice. */
  | 'repeated_request';

export interface Repeat {
  readonly kind: RepeatKind;
  /** Where it came first; 1-based. */
  readonly firstLine: number;
}

/**
 * Remembers in 32 bytes a document, whatever its length. It knows hashes of 53 bits alone: among a million
 * documents one repeat is made up with a chance of 1 in 9,000.
 */
export class RepeatFinder {
  readonly #keys = new FirstSeen();
  readonly #requests = new FirstSeen();

  see(key: string, requestHash: string, line: number): Repeat | null {
    const request = hash53(requestHash);
    // The low half is enough to tell two requests of one key apart.
    const mark = request % 0x1_0000_0000;
    const withKey = this.#keys.see(hash53(key), line, mark);
    const withRequest = this.#requests.see(request, line, 0);
    if (withKey !== null) {
      const kind = withKey.mark === mark ? 'repeated_document' : 'repeated_id';
      return { kind, firstLine: withKey.line };
    }
    return withRequest === null ? null : { kind: 'repeated_request', firstLine: withRequest.line };
  }
}

const FIRST_CAPACITY = 1 << 12;
const FULLEST = 0.75;

/** An open-addressing table of hashes and what came with each the first time. A line of 0 marks a free slot. */
class FirstSeen {
  #hashes = new Float64Array(FIRST_CAPACITY);
  #lines = new Uint32Array(FIRST_CAPACITY);
  #marks = new Uint32Array(FIRST_CAPACITY);
  #used = 0;

  /** @returns what came first with this hash; null when this is the first, which is then remembered */
  see(hash: number, line: number, mark: number): { readonly line: number; readonly mark: number } | null {
    const slot = findSlot(this.#hashes, this.#lines, hash);
    const firstLine = this.#lines[slot] as number;
    if (firstLine !== 0) return { line: firstLine, mark: this.#marks[slot] as number };
    this.#put(slot, hash, line, mark);
    this.#used += 1;
    if (this.#used >= this.#hashes.length * FULLEST) this.#grow();
    return null;
  }

  #put(slot: number, hash: number, line: number, mark: number): void {
    this.#hashes[slot] = hash;
    this.#lines[slot] = line;
    this.#marks[slot] = mark;
  }

  #grow(): void {
    const hashes = this.#hashes;
    const lines = this.#lines;
    const marks = this.#marks;
    this.#hashes = new Float64Array(hashes.length * 2);
    this.#lines = new Uint32Array(hashes.length * 2);
    this.#marks = new Uint32Array(hashes.length * 2);
    for (let slot = 0; slot < hashes.length; slot += 1) {
      const line = lines[slot] as number;
      if (line === 0) continue;
      const hash = hashes[slot] as number;
      this.#put(findSlot(this.#hashes, this.#lines, hash), hash, line, marks[slot] as number);
    }
  }
}

function findSlot(hashes: Float64Array, lines: Uint32Array, hash: number): number {
  const slotMask = hashes.length - 1;
  let slot = (hash % 0x1_0000_0000) & slotMask;
  while (lines[slot] !== 0 && hashes[slot] !== hash) slot = (slot + 1) & slotMask;
  return slot;
}
