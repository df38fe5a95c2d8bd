/**
 * A total over all documents from some of them. Their lengths are known of all, and tokens follow lengths closely, so
 * the total is read off the regression line of tokens on bytes (the survey sampler's regression estimator); what is
 * uncertain is only how far documents stray from that line.
 */

export interface Population {
  readonly documents: number;
  readonly bytes: number;
}

export interface EstimatedTotal {
  readonly total: number;
  /** Half of the 95 % interval; 0 where every document was looked at. */
  readonly plusMinus: number;
}

/** Two-sided, of the normal distribution. */
const Z_95 = 1.96;

export class TotalEstimator {
  #count = 0;
  #sum = 0;
  #meanBytes = 0;
  #meanValue = 0;
  #bytesSquares = 0;
  #valueSquares = 0;
  #products = 0;

  /** Sums of squares are kept around the running means (Welford), so that large values lose no digits. */
  add(bytes: number, value: number): void {
    this.#count += 1;
    this.#sum += value;
    const bytesOff = bytes - this.#meanBytes;
    const valueOff = value - this.#meanValue;
    this.#meanBytes += bytesOff / this.#count;
    this.#meanValue += valueOff / this.#count;
    this.#bytesSquares += bytesOff * (bytes - this.#meanBytes);
    this.#valueSquares += valueOff * (value - this.#meanValue);
    this.#products += bytesOff * (value - this.#meanValue);
  }

  estimate({ documents, bytes }: Population): EstimatedTotal {
    const count = this.#count;
    if (count >= documents || count === 0) return { total: this.#sum, plusMinus: 0 };
    const slope = this.#bytesSquares > 0 ? this.#products / this.#bytesSquares : 0;
    const total = documents * (this.#meanValue + slope * (bytes / documents - this.#meanBytes));
    if (count < 3) return { total: Math.max(0, total), plusMinus: Number.POSITIVE_INFINITY };
    const strayed = Math.max(0, this.#valueSquares - slope * this.#products);
    const variance = strayed / (count - 2);
    const ofMean = (variance / count) * (1 - count / documents);
    return { total: Math.max(0, total), plusMinus: Z_95 * documents * Math.sqrt(ofMean) };
  }
}
