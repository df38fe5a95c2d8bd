/**
 * Chance without a stream: every draw is a pure function of the seed, the document and how often it came, so
 * that two servers with one seed agree whatever order the calls arrive in.
 */

/** A fixed number, or one drawn evenly between both ends, ends included. */
export type NumberRange = number | { readonly min: number; readonly max: number };

/** What a draw is for; draws for different ends are independent. */
export type Purpose = 'latency' | 'output_tokens' | 'fault';

const SALTS: Readonly<Record<Purpose, number>> = {
  latency: 0x1b873593,
  output_tokens: 0x38b34ae5,
  fault: 0x7feb352d,
};

/** Uniform in [0, 1). `fingerprint` is 12 hexadecimal digits. */
export function seededShare(seed: number, purpose: Purpose, fingerprint: string, nth: number): number {
  let hash = mix(seed ^ SALTS[purpose]);
  hash = mix(hash ^ Number.parseInt(fingerprint.slice(0, 6), 16));
  hash = mix(hash ^ Number.parseInt(fingerprint.slice(6), 16));
  hash = mix(hash ^ nth);
  return hash / 2 ** 32;
}

/** A whole number of the range. */
export function seededNumber(
  range: NumberRange,
  seed: number,
  purpose: Purpose,
  fingerprint: string,
  nth: number,
): number {
  if (typeof range === 'number') return range;
  const span = range.max - range.min + 1;
  return range.min + Math.floor(seededShare(seed, purpose, fingerprint, nth) * span);
}

/** The finalizer of MurmurHash3 (Austin Appleby, public domain): every input bit moves every output bit. */
function mix(value: number): number {
  let hash = (value + 0x9e3779b9) >>> 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
