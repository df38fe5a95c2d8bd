/**
 * Money without drift. Prices are kept as whole attodollars (10^-18 US dollars) per token, sums are whole
 * attodollars, and only a finished sum is rounded, once, to the whole micro-dollars that are stored and shown.
 */

export type AttoUsd = bigint;

const ATTO_DIGITS = 18;
const ATTO_PER_MICRO = 10n ** 12n;

/** @param usd US dollars per million tokens, as price lists have it */
export function attoPerTokenOfMillion(usd: number): AttoUsd {
  return scaled(usd, ATTO_DIGITS - 6);
}

/** @param usd US dollars, e.g. per token or per request */
export function attoOfUsd(usd: number): AttoUsd {
  return scaled(usd, ATTO_DIGITS);
}

/** Rounds half up. */
export function microUsdOfAtto(atto: AttoUsd): number {
  return Number((atto + ATTO_PER_MICRO / 2n) / ATTO_PER_MICRO);
}

/** Rounds up: for what may be spent at most. */
export function microUsdOfAttoUp(atto: AttoUsd): number {
  return Number((atto + ATTO_PER_MICRO - 1n) / ATTO_PER_MICRO);
}

/**
 * `value` times 10^`digits`, rounded half up, going by the decimal digits that `value` prints: here 0.15 is fifteen
 * hundredths, not the nearest binary fraction.
 *
 * @param value finite and not negative
 */
function scaled(value: number, digits: number): bigint {
  const [mantissa = '0', exponent = '0'] = value.toExponential().split('e');
  const [whole = '0', fraction = ''] = mantissa.split('.');
  const significant = BigInt(whole + fraction);
  const power = Number(exponent) - fraction.length + digits;
  if (power >= 0) return significant * 10n ** BigInt(power);
  const divisor = 10n ** BigInt(-power);
  return (significant + divisor / 2n) / divisor;
}
