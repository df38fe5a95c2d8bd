/** Chance that can be had again: the same seed gives the same numbers. Uniform in [0, 1). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    // Weyl sequence through the finalizer of MurmurHash3 (Austin Appleby, public domain).
    state = (state + 0x9e3779b9) >>> 0;
    let hash = state;
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
  };
}
