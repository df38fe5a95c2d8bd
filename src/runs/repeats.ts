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
 * Remembers in some 60 bytes a document, whatever its length. It knows hashes of 53 bits alone: among a million
 * documents one repeat is made up with a chance of 1 in 9,000.
 */
export class RepeatFinder {
  readonly #keys = new FirstLines();
  readonly #requests = new FirstLines();
  /** By line: the low half of its request's hash, which tells two requests of one key apart. */
  readonly #requestMarks = new LineMarks();

  see(key: string, requestHash: string, line: number): Repeat | null {
    const request = hash53(requestHash);
    const mark = request % 0x1_0000_0000;
    const keyLine = this.#keys.see(hash53(key), line);
    const requestLine = this.#requests.see(request, line);
    if (keyLine === null) {
      this.#requestMarks.set(line, mark);
      return requestLine === null ? null : { kind: 'repeated_request', firstLine: requestLine };
    }
    const isSame = this.#requestMarks.of(keyLine) === mark;
    return { kind: isSame ? 'repeated_document' : 'repeated_id', firstLine: keyLine };
  }
}

const FIRST_CAPACITY = 1 << 12;
const FULLEST = 0.75;

/** An open-addressing table of hashes and the line where each came first. A line of 0 marks a free slot. */
class FirstLines {
  #hashes = new Float64Array(FIRST_CAPACITY);
  #lines = new Uint32Array(FIRST_CAPACITY);
  #used = 0;

  /** @returns the line where this hash came first; null when this is it, which is then remembered */
  see(hash: number, line: number): number | null {
    const slot = findSlot(this.#hashes, this.#lines, hash);
    const firstLine = this.#lines[slot] as number;
    if (firstLine !== 0) return firstLine;
    this.#hashes[slot] = hash;
    this.#lines[slot] = line;
    this.#used += 1;
    if (this.#used >= this.#hashes.length * FULLEST) this.#grow();
    return null;
  }

  #grow(): void {
    const hashes = new Float64Array(this.#hashes.length * 2);
    const lines = new Uint32Array(hashes.length);
    for (let slot = 0; slot < this.#hashes.length; slot += 1) {
      const line = this.#lines[slot] as number;
      if (line === 0) continue;
      const hash = this.#hashes[slot] as number;
      const target = findSlot(hashes, lines, hash);
      hashes[target] = hash;
      lines[target] = line;
    }
    this.#hashes = hashes;
    this.#lines = lines;
  }
}

function findSlot(hashes: Float64Array, lines: Uint32Array, hash: number): number {
  const slotMask = hashes.length - 1;
  let slot = (hash % 0x1_0000_0000) & slotMask;
  while (lines[slot] !== 0 && hashes[slot] !== hash) slot = (slot + 1) & slotMask;
  return slot;
}

const BLOCK_LINES = 1 << 16;

/** A number for each line, in blocks, so that growing copies nothing. */
class LineMarks {
  readonly #blocks: Uint32Array[] = [];

  set(line: number, mark: number): void {
    const index = Math.floor(line / BLOCK_LINES);
    while (this.#blocks.length <= index) this.#blocks.push(new Uint32Array(BLOCK_LINES));
    (this.#blocks[index] as Uint32Array)[line % BLOCK_LINES] = mark;
  }

  of(line: number): number | undefined {
    return this.#blocks[Math.floor(line / BLOCK_LINES)]?.[line % BLOCK_LINES];
  }
}
