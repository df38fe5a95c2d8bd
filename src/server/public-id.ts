/** Ids as users of the service see them. They begin with the time, so that new ones stand together in an index. */
import { randomBytes } from 'node:crypto';

export type PublicIdKind = 'task' | 'run';

/** Milliseconds since the epoch take 48 bits until the year 10889 (as in UUID version 7, RFC 9562). */
const TIME_DIGITS = 12;
const RANDOM_BYTES = 10;

/** Nobody can guess it. */
export function newPublicId(kind: PublicIdKind, nowMs: number): string {
  return `${kind}_${nowMs.toString(16).padStart(TIME_DIGITS, '0')}${randomBytes(RANDOM_BYTES).toString('hex')}`;
}

/** When an id was given, by what it says itself; null for what is no such id. */
export function timeOfPublicId(kind: PublicIdKind, id: string): number | null {
  const digits = new RegExp(`^${kind}_([0-9a-f]{${TIME_DIGITS}})[0-9a-f]{${RANDOM_BYTES * 2}}$`).exec(
    id,
  )?.[1];
  return digits === undefined ? null : Number.parseInt(digits, 16);
}
