/**
 * Whether a document fits its model. A token is at least one byte, so whoever has no more bytes than there is room
 * for fits; only what is longer is counted, with the model's own tokenizer where that is published.
 */
import type { JsonObject } from '../../core/json.js';
import type { RenderedRequest } from '../../endpoints/rendered-request.js';
import type { PriceBook, PriceQuery } from '../../pricing/price-book.js';
import { loadTokenCounter } from '../../pricing/tokens.js';

export type LengthProblemKind =
  | 'over_context'
  /** It fits, but not together with the output it asks for; some servers refuse that, some shorten the answer. */
  | 'over_context_with_cap'
  /** Asks for more output than the model ever gives. */
  | 'over_output_limit'
  /** Larger than a whole minute's tokens: no waiting lets it through. */
  | 'over_tokens_per_minute';

export interface LengthProblem {
  readonly kind: LengthProblemKind;
  readonly message: string;
}

export interface LengthCheckOptions {
  readonly prices: PriceBook;
  readonly query: PriceQuery;
  /** What the widest lane lets through in a minute; null where one has no limit. */
  readonly tokensPerMinute: number | null;
  /** What `--param` adds to every request (tools, a schema). */
  readonly parameterBytes: number;
}

export interface CheckedModel {
  readonly model: string;
  documents: number;
  /** Null where no table tells: its documents' lengths are then not checked. */
  readonly contextWindowTokens: number | null;
  readonly maxOutputTokens: number | null;
}

/** A few messages' framing, for records, whose text has none. */
const FRAMING_BYTES = 100;

export class LengthCheck {
  readonly #options: LengthCheckOptions;
  readonly #models = new Map<string, CheckedModel>();

  constructor(options: LengthCheckOptions) {
    this.#options = options;
  }

  /** By number of documents, the most first. */
  models(): readonly CheckedModel[] {
    return [...this.#models.values()].sort((one, other) => other.documents - one.documents);
  }

  /**
   * @param line the document's line where that is the request, with all that is in it besides text (tools, a
   * schema); empty for a record
   * @returns all that is wrong; a promise only where tokens have to be counted
   */
  problemsOf(
    request: RenderedRequest,
    line: string,
  ): readonly LengthProblem[] | Promise<readonly LengthProblem[]> {
    const model = this.#modelNamed(request.model);
    model.documents += 1;
    const { tokensPerMinute, parameterBytes } = this.#options;
    const { outputCap, inputText } = request;
    const { contextWindowTokens } = model;
    const most = Math.min(
      contextWindowTokens ?? Number.POSITIVE_INFINITY,
      tokensPerMinute ?? Number.POSITIVE_INFINITY,
    );
    const room = most - (outputCap ?? 0) - parameterBytes - FRAMING_BYTES;
    const overLimit = overOutputLimit(model, outputCap);
    // Three bytes at most to a unit of UTF-16: what is short needs no look at its characters.
    if ((inputText.length + line.length) * 3 <= room) return overLimit;
    if (Buffer.byteLength(inputText) + Buffer.byteLength(line) <= room) return overLimit;
    return this.#count(request, model, overLimit);
  }

  async #count(
    request: RenderedRequest,
    model: CheckedModel,
    overLimit: readonly LengthProblem[],
  ): Promise<readonly LengthProblem[]> {
    const counter = await loadTokenCounter(model.model);
    const counted = counter.countRequest(request.endpoint, JSON.parse(request.bodyJson) as JsonObject);
    const { tokensPerMinute } = this.#options;
    // Each of several inputs has the context for itself.
    const contextWindowTokens = request.inputs > 1 ? null : model.contextWindowTokens;
    // What an image is billed as is not the room it takes.
    const inputTokens = counted.images > 0 ? counter.countText(request.inputText) : counted.tokens;
    const tokens = `${counted.exact ? '' : 'about '}${grouped(inputTokens)} tokens`;
    const cap = request.outputCap ?? 0;
    const withCap = cap === 0 ? '' : ` and an answer of up to ${grouped(cap)}`;
    const problems = [...overLimit];
    const say = (kind: LengthProblemKind, message: string) => problems.push({ kind, message });
    if (contextWindowTokens !== null && inputTokens > contextWindowTokens) {
      say('over_context', `${tokens}, where ${model.model} takes ${grouped(contextWindowTokens)}`);
    } else if (contextWindowTokens !== null && inputTokens + cap > contextWindowTokens) {
      const most = `${model.model} takes ${grouped(contextWindowTokens)} in all`;
      say('over_context_with_cap', `${tokens}${withCap}, where ${most}`);
    }
    if (tokensPerMinute !== null && inputTokens + cap > tokensPerMinute) {
      const most = `the limit lets ${grouped(tokensPerMinute)} through in a minute`;
      say('over_tokens_per_minute', `${tokens}${withCap}, where ${most}`);
    }
    return problems;
  }

  #modelNamed(name: string): CheckedModel {
    const known = this.#models.get(name);
    if (known !== undefined) return known;
    const price = this.#options.prices.priceOf(name, this.#options.query);
    const model: CheckedModel = {
      model: name,
      documents: 0,
      contextWindowTokens: price?.contextWindowTokens ?? null,
      maxOutputTokens: price?.maxOutputTokens ?? null,
    };
    this.#models.set(name, model);
    return model;
  }
}

function overOutputLimit(
  { model, maxOutputTokens }: CheckedModel,
  cap: number | null,
): readonly LengthProblem[] {
  if (cap === null || maxOutputTokens === null || cap <= maxOutputTokens) return NONE;
  const message = `asks for up to ${grouped(cap)} tokens of output, where ${model} gives ${grouped(maxOutputTokens)} at most`;
  return [{ kind: 'over_output_limit', message }];
}

function grouped(count: number): string {
  return count.toLocaleString('en-US');
}

const NONE: readonly LengthProblem[] = [];
