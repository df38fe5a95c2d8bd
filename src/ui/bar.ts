/** The bar itself, in a row of cells. */
import type { ChalkInstance } from 'chalk';
import type { Paint } from './field-line.js';

export interface BarShares {
  /** Done of the whole, failed ones included, 0 to 1. */
  readonly share: number;
  readonly failedShare: number;
}

/** Heavy and light lines, so that the bar reads without colour too. Something done shows at once; full means done. */
export function drawBar(shares: BarShares, cells: number, colours: ChalkInstance): string {
  const share = Math.min(1, Math.max(0, shares.share));
  const halves = share === 0 ? 0 : Math.max(1, Math.floor(share * cells * 2));
  const full = Math.floor(halves / 2);
  const half = halves % 2 === 1 ? '╸' : '';
  const failed = Math.min(full, Math.round(shares.failedShare * cells));
  const paint: Paint = share === 1 ? colours.green : colours.cyan;
  return (
    paint('━'.repeat(full - failed)) +
    colours.red('━'.repeat(failed)) +
    (failed > 0 ? colours.red : paint)(half) +
    colours.dim('─'.repeat(cells - full - half.length))
  );
}
