/**
 * The port to what models cost. A book answers for a model at a server and a moment; where it does not know it
 * says null, and whoever asked must say "unknown", never zero.
 */
import type { ModelPrice, PriceTable } from './model-price.js';

export interface PriceQuery {
  /** Where the requests go; null for the default endpoint, or when none is meant. */
  readonly baseUrl: string | null;
  /** When the call is priced: some prices change on a date, or with the hour of the day. */
  readonly nowMs: number;
  /**
   * The simulator answers as `simulated/<model>`. With true such a name is priced as the model it stands for, for
   * a rehearsal's cost; else it has no price, as nothing is paid.
   */
  readonly rehearsed?: boolean;
}

/** Its `date` is that of the first table that has one; the table that priced a model is in its `ModelPrice`. */
export interface PriceBook extends PriceTable {
  /**
   * @param model as the request names it: what a server calls itself in its answer may be an alias or a snapshot
   */
  priceOf(model: string, query: PriceQuery): ModelPrice | null;
}

/** A book whose earlier pages overrule the later: a model is priced by the first that knows it, wholly. */
export function firstKnownPrice(books: readonly PriceBook[]): PriceBook {
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

const SIMULATED = 'simulated/';

/** The model to look up for a name: null for a simulated one that is not to be priced. */
export function modelToPrice(model: string, query: PriceQuery): string | null {
  if (!model.startsWith(SIMULATED)) return model;
  return query.rehearsed === true ? model.slice(SIMULATED.length) : null;
}
