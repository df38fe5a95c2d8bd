/** Figures in reports: no more digits than they are worth. */
export function round(number, digits = 2) {
  return Number(number.toFixed(digits));
}
