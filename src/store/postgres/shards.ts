/** Sums and counts are kept in as many rows; two connections seldom share one. */
export const SHARDS = 32;
