/**
 * What models cost, and the port to whatever knows it. A book answers for a model at a server and a moment. What it does not
 * know is null, which callers must show as "unknown", never as zero.
 */
import type { AttoUsd } from './money.js';

/** Ways of serving a request that a provider prices differently. */
export const PRICE_TIERS = ['standard', 'batch', 'flex', 'priority'] as const;

export type PriceTier = (typeof PRICE_TIERS)[number];

/** Per token, except `perRequest`. Null if the table does not say: unknown, which never means free. */
export interface TokenRates {
  readonly input: AttoUsd | null;
  readonly cachedInput: AttoUsd | null;
  readonly cacheWrite: AttoUsd | null;
  readonly output: AttoUsd | null;
  readonly reasoning: AttoUsd | null;
  readonly perRequest: AttoUsd;
}

/** A long prompt changes the price of the whole request, not of the tokens beyond the threshold. */
export interface RateTable {
  readonly base: TokenRates;
  /** Ascending; the last one whose threshold the input exceeds holds. */
  readonly above: readonly { readonly inputTokens: number; readonly rates: TokenRates }[];
}

export interface PriceTable {
  /** A file's path, or the package and its version; several joined by ` + `. */
  readonly source: string;
  /** `YYYY-MM-DD` of the prices; null if the table does not say. */
  readonly date: string | null;
}

export interface ModelPrice {
  /** As the table names it, which may not be how it was asked for (`gpt-4o-2024-11-20` is priced as `gpt-4o`). */
  readonly model: string;
  readonly table: PriceTable;
  /** Null for a tier that is not offered, or whose price is unknown. */
  readonly tiers: Readonly<Record<PriceTier, RateTable | null>>;
  /** The most tokens the model takes: input and output together, or input alone, whichever its table means. */
  readonly contextWindowTokens: number | null;
  readonly maxOutputTokens: number | null;
}

/** A price as a file states it. */
export interface FilePrice extends Pick<ModelPrice, 'tiers' | 'contextWindowTokens' | 'maxOutputTokens'> {
  /** Whose price it is, in the file's own words; null for whoever serves the model. */
  readonly servedBy: string | null;
}

export interface StatedRates {
  readonly input: AttoUsd | null;
  readonly output: AttoUsd | null;
  readonly cachedInput?: AttoUsd | null;
  readonly cacheWrite?: AttoUsd | null;
  readonly reasoning?: AttoUsd | null;
  readonly perRequest?: AttoUsd | null;
}

/** Completes rates: cached and written tokens cost what input costs, and reasoning what output costs, unless said. */
export function tokenRates(stated: StatedRates): TokenRates {
  return {
    input: stated.input,
    cachedInput: stated.cachedInput ?? stated.input,
    cacheWrite: stated.cacheWrite ?? stated.input,
    output: stated.output,
    reasoning: stated.reasoning ?? stated.output,
    perRequest: stated.perRequest ?? 0n,
  };
}

export type TokenRate = Exclude<keyof TokenRates, 'perRequest'>;

/** Other rates for tokens, made of each of these; the fee of a request stays. */
export function mapRates(
  rates: TokenRates,
  change: (rate: AttoUsd | null, field: TokenRate) => AttoUsd | null,
): TokenRates {
  const { perRequest, ...ofTokens } = rates;
  const changed = Object.entries(ofTokens).map(([field, rate]) => [field, change(rate, field as TokenRate)]);
  return { ...(Object.fromEntries(changed) as Record<TokenRate, AttoUsd | null>), perRequest };
}

export interface PriceQuery {
  /** Where the requests go; null for the default endpoint, or for no particular one. */
  readonly baseUrl: string | null;
  /** The time of the call: some prices change on a date, or with the hour of the day. */
  readonly nowMs: number;
  /**
   * The simulator answers as `simulated/<model>`. If true, such a name is priced as the model it stands for, to show what a
   * rehearsal would cost; otherwise it has no price, since nothing is paid.
   */
  readonly rehearsed?: boolean;
}

/** Its `date` is that of the first table that has one; the table that priced a model is in its `ModelPrice`. */
export interface PriceBook extends PriceTable {
  /**
   * @param model as the request names it, since an answer may name an alias or a snapshot
   */
  priceOf(model: string, query: PriceQuery): ModelPrice | null;
}

const SIMULATED = 'simulated/';

/** The model to look up for a name; null for a simulated one that is not to be priced. */
export function modelToPrice(model: string, query: PriceQuery): string | null {
  if (!model.startsWith(SIMULATED)) return model;
  return query.rehearsed === true ? model.slice(SIMULATED.length) : null;
}
