/** The bar itself, in a row of cells. */
import type { ChalkInstance } from 'chalk';

export interface BarShares {
  /** Done of the whole, failed ones included, 0 to 1. */
  readonly share: number;
  readonly failedShare: number;
}

/** Heavy and light lines, so that the bar reads without colour too. Something done shows at once; full means done. */
export function drawBar(shares: BarShares, cells: number, colours: ChalkInstance): string {
  const share = Math.min(1, Math.max(0, shares.share));
  const halves = share === 0 ? 0 : Math.max(1, Math.floor(share * cells * 2));
  const filled = '━'.repeat(Math.floor(halves / 2)) + '╸'.repeat(halves % 2);
  const failed = Math.min(filled.length, Math.round(shares.failedShare * cells));
  const paint = share === 1 ? colours.green : colours.cyan;
  return (
    paint(filled.slice(0, filled.length - failed)) +
    colours.red(filled.slice(filled.length - failed)) +
    colours.dim('─'.repeat(cells - filled.length))
  );
}
