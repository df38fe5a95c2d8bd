/**
 * A fair sample of documents from a stream of unknown length: every document is as likely in it as every other, and
 * the same input gives the same sample. All of a small input is in it. Bounded in number and in bytes.
 */

export interface SampleBounds {
  readonly documents: number;
  readonly bytes: number;
}

/** Counting it takes a second or two; larger samples tell little more. */
export const SAMPLE_BOUNDS: SampleBounds = { documents: 5_000, bytes: 32_000_000 };

export interface SampledDocument {
  readonly body: string;
  readonly bytes: number;
}

/** Reservoir sampling (Vitter's algorithm R) whose reservoir shrinks where long documents would fill the memory. */
export class DocumentSample {
  readonly #bounds: SampleBounds;
  readonly #random = sameEveryTime();
  /** As bytes: a string cut from a page would keep all of the page in memory. */
  readonly #held: Buffer[] = [];
  #capacity: number;
  #heldBytes = 0;
  #documents = 0;
  #bytes = 0;
  #longest = Buffer.alloc(0);

  constructor(bounds: SampleBounds = SAMPLE_BOUNDS) {
    this.#bounds = bounds;
    this.#capacity = bounds.documents;
  }

  offer(body: string): void {
    this.#documents += 1;
    const bytes = Buffer.byteLength(body);
    this.#bytes += bytes;
    if (bytes > this.#longest.length) this.#longest = Buffer.from(body);
    if (this.#held.length < this.#capacity) {
      this.#held.push(Buffer.from(body));
      this.#heldBytes += bytes;
    } else {
      const place = Math.floor(this.#random() * this.#documents);
      const displaced = this.#held[place];
      if (displaced === undefined) return;
      this.#held[place] = Buffer.from(body);
      this.#heldBytes += bytes - displaced.length;
    }
    while (this.#heldBytes > this.#bounds.bytes && this.#held.length > 1) this.#dropOne();
  }

  /** All that were offered. */
  get population(): { readonly documents: number; readonly bytes: number } {
    return { documents: this.#documents, bytes: this.#bytes };
  }

  get size(): number {
    return this.#held.length;
  }

  *documents(): Generator<SampledDocument> {
    for (const body of this.#held) yield { body: body.toString('utf8'), bytes: body.length };
  }

  /** The longest document of all that were offered, whether it is in the sample or not. */
  longest(): string {
    return this.#longest.toString('utf8');
  }

  /** What is left of a fair sample after dropping any at random is a fair sample. */
  #dropOne(): void {
    const last = this.#held.pop();
    if (last === undefined) return;
    const place = Math.floor(this.#random() * (this.#held.length + 1));
    const dropped = this.#held[place] ?? last;
    if (dropped !== last) this.#held[place] = last;
    this.#heldBytes -= dropped.length;
    this.#capacity = this.#held.length;
  }
}

/** Uniform in [0, 1), the same numbers each time: a Weyl sequence through the finalizer of MurmurHash3. */
function sameEveryTime(): () => number {
  let state = 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let hash = state;
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
  };
}
