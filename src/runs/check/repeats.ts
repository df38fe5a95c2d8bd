/** Finds repeats in an input of any length: which line said the same first. */
import { DistinctTexts, hash53, NumberBlocks } from '../../documents/distinct-texts.js';

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
 * Remembers in some 45 bytes a document, whatever its length. It knows hashes of 53 bits alone: among a million
 * documents one repeat is made up with a chance of 1 in 9,000.
 */
export class RepeatFinder {
  readonly #keys = new DistinctTexts();
  readonly #keyLines = new NumberBlocks();
  /** By key: the low half of its first request's hash, which tells two requests of one key apart. */
  readonly #keyRequests = new NumberBlocks();
  readonly #requests = new DistinctTexts();
  readonly #requestLines = new NumberBlocks();

  see(key: string, requestHash: string, line: number): Repeat | null {
    const request = hash53(requestHash);
    const mark = request % 0x1_0000_0000;
    const knownKeys = this.#keys.count;
    const knownRequests = this.#requests.count;
    const keyNumber = this.#keys.numberOf(hash53(key));
    const requestNumber = this.#requests.numberOf(request);
    const isNewRequest = requestNumber === knownRequests;
    if (isNewRequest) this.#requestLines.set(requestNumber, line);
    if (keyNumber === knownKeys) {
      this.#keyLines.set(keyNumber, line);
      this.#keyRequests.set(keyNumber, mark);
      if (isNewRequest) return null;
      return { kind: 'repeated_request', firstLine: this.#requestLines.at(requestNumber) };
    }
    const isSame = this.#keyRequests.at(keyNumber) === mark;
    return {
      kind: isSame ? 'repeated_document' : 'repeated_id',
      firstLine: this.#keyLines.at(keyNumber),
    };
  }
}
