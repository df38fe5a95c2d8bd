/** What the documents would take and cost with one model, or with the models that they name themselves. */
import type { JsonObject } from '../../core/json.js';
import { ENDPOINTS } from '../../endpoints/endpoints.js';
import type { RenderedRequest } from '../../endpoints/rendered-request.js';
import { ratesFor, tierOfServiceTier } from '../../pricing/cost.js';
import type {
  ModelPrice,
  PriceBook,
  PriceQuery,
  PriceTable,
  PriceTier,
  RateTable,
} from '../../pricing/price-book.js';

import { loadTokenCounter, type RequestTokens, type SizeOfImageUrl } from '../../pricing/tokens.js';
import { Distribution, type Figures } from './distribution.js';
import { assumeOutput, type OutputBasis, type TokenRange } from './output-assumption.js';
import { type EstimatedTotal, type Population, TotalEstimator } from './total-estimator.js';

/** Ways to send that providers price differently: one by one, slowly one by one, and as a remote batch. */
export const WAYS = ['direct', 'flex', 'batch'] as const;
export type Way = (typeof WAYS)[number];

function byWay<Value>(make: (way: Way) => Value): Readonly<Record<Way, Value>> {
  return { direct: make('direct'), flex: make('flex'), batch: make('batch') };
}

export interface CostRange {
  /** Micro-dollars, for the short and the long end of the assumed output. */
  readonly low: number;
  readonly high: number;
  /** Half of the 95 % interval that the sample leaves, in micro-dollars at the long end. */
  readonly plusMinus: number;
}

export interface NamedModel {
  readonly model: string;
  /** Documents that were counted with it, not all where a sample was taken. */
  readonly counted: number;
  /** As the tokenizer is called; `bytes` for the simulator's rule. */
  readonly tokenizer: string;
  /** False where the model's own tokenizer is another, or not published. */
  readonly ownTokenizer: boolean;
  /** The table its price is from; null: unknown. */
  readonly priceTable: PriceTable | null;
}

export interface ModelEstimate {
  /** The model that was asked for; null: what each document names. */
  readonly asked: string | null;
  readonly models: readonly NamedModel[];
  readonly input: EstimatedTotal & { readonly document: Figures };
  readonly output: {
    readonly low: EstimatedTotal;
    readonly high: EstimatedTotal;
    /** In the order in which they were met. */
    readonly bases: readonly OutputBasis[];
    readonly document: { readonly low: Figures; readonly high: Figures };
  };
  /** Null where a rate that is needed is unknown, or the way is not offered. */
  readonly cost: Readonly<Record<Way, CostRange | null>>;
  /** Of the documents, those that may share a call. */
  readonly groupedShare: number;
  /** Tiers that requests ask for themselves, which is what `direct` costs then. */
  readonly serviceTiers: readonly string[];
  /** Images, tools and the like: counted after a rule. */
  readonly estimatedDocuments: number;
  /** Parts that nobody can count before they are sent; they are in no total. */
  readonly uncountedParts: number;
}

export interface ModelTallyOptions {
  readonly asked: string | null;
  readonly prices: PriceBook;
  readonly query: PriceQuery;
  readonly givenOutput: TokenRange | null;
  readonly simulated: boolean;
}

interface Model extends Omit<NamedModel, 'counted'> {
  counted: number;
  readonly price: ModelPrice | null;
  readonly count: (
    endpoint: RenderedRequest['endpoint'],
    body: JsonObject,
    sizeOf: SizeOfImageUrl,
  ) => RequestTokens;
}

interface CostTally {
  readonly low: TotalEstimator;
  readonly high: TotalEstimator;
  isKnown: boolean;
}

/** Tokens of documents: in all, and of one. */
class TokenTally {
  readonly total = new TotalEstimator();
  readonly spread = new Distribution();

  add(bytes: number, tokens: number): void {
    this.total.add(bytes, tokens);
    this.spread.add(tokens);
  }
}

export class ModelTally {
  readonly #options: ModelTallyOptions;
  readonly #models = new Map<string, Model>();
  readonly #input = new TokenTally();
  readonly #low = new TokenTally();
  readonly #high = new TokenTally();
  readonly #bases = new Set<OutputBasis>();
  readonly #costs = byWay(costTally);
  readonly #serviceTiers = new Set<string>();
  #longestInput = 0;
  #estimatedDocuments = 0;
  #groupedDocuments = 0;
  #uncountedParts = 0;

  constructor(options: ModelTallyOptions) {
    this.#options = options;
  }

  /** @param bytes of the document, for what is known of all documents */
  async add(request: RenderedRequest, bytes: number): Promise<void> {
    const { model, counted } = await this.#count(request);
    model.counted += 1;
    if (!counted.exact) this.#estimatedDocuments += 1;
    if (request.groupKey !== null) this.#groupedDocuments += 1;
    this.#uncountedParts += counted.uncountedParts;
    const output = assumeOutput(model.model, request.outputCap, this.#options.givenOutput);
    this.#bases.add(output.basis);
    if (request.serviceTier !== null) this.#serviceTiers.add(request.serviceTier);
    this.#input.add(bytes, counted.tokens);
    this.#low.add(bytes, output.low);
    this.#high.add(bytes, output.high);
    for (const way of WAYS) {
      const tally = this.#costs[way];
      const rates = ratesOf(model.price, way, request.serviceTier);
      const low = costMicroUsd(rates, counted.tokens, output.low);
      const high = costMicroUsd(rates, counted.tokens, output.high);
      if (low === null || high === null) {
        tally.isKnown = false;
        continue;
      }
      tally.low.add(bytes, low);
      tally.high.add(bytes, high);
    }
  }

  /** The longest document, which a sample may have missed, counts for the largest alone. */
  async addLongest(request: RenderedRequest): Promise<void> {
    const { counted } = await this.#count(request);
    this.#longestInput = Math.max(this.#longestInput, counted.tokens);
  }

  estimate(population: Population): ModelEstimate {
    const input = this.#input.spread.figures();
    const counted = [...this.#models.values()].reduce((sum, model) => sum + model.counted, 0);
    return {
      asked: this.#options.asked,
      models: [...this.#models.values()]
        .filter(({ counted }) => counted > 0)
        .sort((one, other) => other.counted - one.counted)
        .map(({ price, count, ...named }) => named),
      input: {
        ...this.#input.total.estimate(population),
        document: { ...input, max: Math.max(input.max, this.#longestInput) },
      },
      output: {
        low: this.#low.total.estimate(population),
        high: this.#high.total.estimate(population),
        bases: [...this.#bases],
        document: { low: this.#low.spread.figures(), high: this.#high.spread.figures() },
      },
      cost: byWay((way) => costRange(this.#costs[way], population)),
      groupedShare: counted === 0 ? 0 : this.#groupedDocuments / counted,
      serviceTiers: [...this.#serviceTiers],
      estimatedDocuments: this.#estimatedDocuments,
      uncountedParts: this.#uncountedParts,
    };
  }

  async #count(request: RenderedRequest): Promise<{ model: Model; counted: RequestTokens }> {
    const { asked } = this.#options;
    const name = asked ?? request.model;
    const model = this.#models.get(name) ?? (await this.#open(name));
    const body = { ...(JSON.parse(request.bodyJson) as JsonObject), model: name };
    return { model, counted: model.count(request.endpoint, body, sizesIn(request)) };
  }

  async #open(name: string): Promise<Model> {
    const { prices, query, simulated } = this.#options;
    const price = prices.priceOf(name, query);
    const counter = simulated ? null : await loadTokenCounter(name);
    const model: Model = {
      model: name,
      counted: 0,
      tokenizer: counter?.encoding ?? 'bytes',
      ownTokenizer: counter?.exact ?? true,
      priceTable: price?.table ?? null,
      price,
      count: (endpoint, body, sizeOf) =>
        counter?.countRequest(endpoint, body, sizeOf) ?? {
          ...ENDPOINTS[endpoint].countSimulatedTokens(body),
          uncountedParts: 0,
        },
    };
    this.#models.set(name, model);
    return model;
  }
}

/** Of files the body does not hold the bytes that would tell. */
function sizesIn({ attachments }: RenderedRequest): SizeOfImageUrl {
  const sizes = new Map(attachments.map(({ url, size }) => [url, size]));
  return (url) => sizes.get(url) ?? null;
}

function costTally(): CostTally {
  return { low: new TotalEstimator(), high: new TotalEstimator(), isKnown: true };
}

function costRange({ low, high, isKnown }: CostTally, population: Population): CostRange | null {
  if (!isKnown) return null;
  const most = high.estimate(population);
  return { low: low.estimate(population).total, high: most.total, plusMinus: most.plusMinus };
}

/** A request may name its tier itself; the other ways overrule it. */
function ratesOf(price: ModelPrice | null, way: Way, serviceTier: string | null): RateTable | null {
  const tier: PriceTier | null = way === 'direct' ? tierOfServiceTier(serviceTier) : way;
  return price === null || tier === null ? null : price.tiers[tier];
}

const ATTO_PER_MICRO = 1e12;

/** Not rounded, so that a million documents of a third of a micro-dollar each are not free. */
function costMicroUsd(table: RateTable | null, inputTokens: number, outputTokens: number): number | null {
  if (table === null) return null;
  const rates = ratesFor(table, inputTokens);
  const { input, output, perRequest } = rates;
  if ((input === null && inputTokens > 0) || (output === null && outputTokens > 0)) return null;
  const atto = Number(perRequest) + inputTokens * Number(input ?? 0n) + outputTokens * Number(output ?? 0n);
  return atto / ATTO_PER_MICRO;
}
