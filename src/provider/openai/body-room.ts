/** What the bodies of all open calls may take of memory together, whatever the servers send at the same time. */
import pLimit from 'p-limit';

/** Four of the largest bodies that are accepted, or five thousand of the usual ones. */
const MOST_BYTES = 256 * 1024 * 1024;

export interface RoomHolder {
  readonly receivedBytes: number;
  /** Ends the call and takes it out of the room. */
  cutForRoom(): void;
}

export class BodyRoom {
  readonly #mostBytes: number;
  readonly #holders = new Set<RoomHolder>();
  readonly #oneAtATime = pLimit(1);
  #bytes = 0;

  /** @param mostBytes of all bodies that are being received */
  constructor(mostBytes = MOST_BYTES) {
    this.#mostBytes = mostBytes;
  }

  /** To be told of each part once `receivedBytes` counts it. Where all is too much, the largest body gives way. */
  take(holder: RoomHolder, bytes: number): void {
    this.#holders.add(holder);
    this.#bytes += bytes;
    while (this.#bytes > this.#mostBytes) {
      const largest = [...this.#holders].reduce((one, other) =>
        other.receivedBytes > one.receivedBytes ? other : one,
      );
      largest.cutForRoom();
      this.leave(largest);
    }
  }

  /** Harmless for one that holds nothing. */
  leave(holder: RoomHolder): void {
    if (this.#holders.delete(holder)) this.#bytes -= holder.receivedBytes;
  }

  /** Unpacks one body after the other: what a packed one comes to is known only afterwards. */
  unpack<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#oneAtATime(work);
  }
}
