/** Adds up one request: counts its texts, estimates its images, and names what cannot be known. */
import { type ImageSize, sizeOfDataUrl } from '../core/image-head.js';
import type { Json } from '../core/json.js';
import type { TokenTally } from '../endpoints/endpoint.js';
import { bareModelName, type CountTokens } from './encoding.js';
import { type ImageDetail, imageTokens } from './image-tokens.js';
import { countTextTokens } from './text-tokens.js';

export interface RequestTokens {
  readonly tokens: number;
  /**
   * False if a part is estimated: another vendor's tokenizer, images, tools, a schema, a text too long to count whole. True
   * means right to within the token or two by which servers differ in framing messages.
   */
  readonly exact: boolean;
  /** Images in the request; their tokens are estimated by the model's published rule. */
  readonly images: number;
  /** Parts whose tokens nobody can know before they are sent (audio, files, hosted tools); not included in `tokens`. */
  readonly uncountedParts: number;
}

/** The size of the image that a part names by this URL; null if unknown. */
export type SizeOfImageUrl = (url: string) => ImageSize | null;

export class RequestTally implements TokenTally {
  readonly modelName: string;
  readonly #model: string;
  readonly #countTokens: CountTokens;
  readonly #sizeOf: SizeOfImageUrl;
  #exact: boolean;
  #tokens = 0;
  #images = 0;
  #uncountedParts = 0;

  constructor(
    model: string,
    countTokens: CountTokens,
    exact: boolean,
    sizeOf: SizeOfImageUrl = sizeOfDataUrl,
  ) {
    this.#model = model;
    this.#sizeOf = sizeOf;
    this.modelName = bareModelName(model);
    this.#countTokens = countTokens;
    this.#exact = exact;
  }

  total(): RequestTokens {
    return {
      tokens: this.#tokens,
      exact: this.#exact && this.#images === 0 && this.#uncountedParts === 0,
      images: this.#images,
      uncountedParts: this.#uncountedParts,
    };
  }

  addTokens(tokens: number): void {
    this.#tokens += tokens;
  }

  addText(text: Json | undefined): void {
    if (typeof text !== 'string' || text === '') return;
    const { tokens, sampled } = countTextTokens(text, this.#countTokens);
    this.#tokens += tokens;
    if (sampled) this.#exact = false;
  }

  addJson(value: Json): void {
    this.addText(JSON.stringify(value));
    this.#exact = false;
  }

  markEstimated(): void {
    this.#exact = false;
  }

  addUncounted(): void {
    this.#uncountedParts += 1;
  }

  addImage(url: Json | undefined, detail: Json | undefined): void {
    this.#images += 1;
    const size = typeof url === 'string' ? this.#sizeOf(url) : null;
    this.#tokens += imageTokens(this.#model, size, detailOf(detail));
  }
}

function detailOf(detail: Json | undefined): ImageDetail {
  return detail === 'low' || detail === 'high' || detail === 'original' ? detail : 'auto';
}
