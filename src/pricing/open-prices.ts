import { loadPackagedPrices } from './packaged-prices.js';
import { loadPriceFile } from './price-file.js';
import { firstKnownPrice, type PriceBook } from './prices.js';

/**
 * The prices that come with the program, overruled by a file where one is given (`--prices`).
 *
 * @throws LlmBatchError (exit 2) when the file cannot be read or is no price file
 */
export async function openPriceBook(file: string | null): Promise<PriceBook> {
  const packaged = await loadPackagedPrices();
  return file === null ? packaged : firstKnownPrice([await loadPriceFile(file), packaged]);
}
