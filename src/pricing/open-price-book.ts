import { loadPackagedPrices } from './packaged-prices.js';
import type { PriceBook } from './price-book.js';
import { loadPriceFile } from './price-file.js';

/**
 * The prices that come with the program, overruled by a file if one is given (`--prices`).
 *
 * @throws LlmBatchError (exit 2) when the file cannot be read or is not a price file
 */
export async function openPriceBook(file: string | null): Promise<PriceBook> {
  const packaged = await loadPackagedPrices();
  return file === null ? packaged : firstKnownPrice([await loadPriceFile(file), packaged]);
}

/** Several books as one: the first that knows a model has the whole say on its price. */
function firstKnownPrice(books: readonly PriceBook[]): PriceBook {
  return {
    source: books.map((book) => book.source).join(' + '),
    date: books.find((book) => book.date !== null)?.date ?? null,
    priceOf(model, query) {
      for (const book of books) {
        const price = book.priceOf(model, query);
        if (price !== null) return price;
      }
      return null;
    },
  };
}
