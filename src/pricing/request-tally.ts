/** Adds up one request: counts its texts, estimates its images, and names what cannot be known. */
import { type ImageSize, sizeOfDataUrl } from '../core/image-head.js';
import { isJsonObject, type Json, type JsonObject } from '../core/json.js';
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

export class RequestTally {
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

  /** What is not text counts as nothing: the server will refuse or ignore it. */
  addText(text: Json | undefined): void {
    if (typeof text !== 'string' || text === '') return;
    const { tokens, sampled } = countTextTokens(text, this.#countTokens);
    this.#tokens += tokens;
    if (sampled) this.#exact = false;
  }

  /** The server renders it in a form of its own, to which compact JSON comes close. */
  addJson(value: Json): void {
    this.addText(JSON.stringify(value));
    this.#exact = false;
  }

  markEstimated(): void {
    this.#exact = false;
  }

  /** A part whose tokens cannot be known here. */
  addUncounted(): void {
    this.#uncountedParts += 1;
  }

  /** The content of a message: a text, or parts as chat completions or responses have them. */
  addContent(content: Json | undefined): void {
    if (typeof content === 'string') this.addText(content);
    else if (Array.isArray(content)) {
      for (const part of content) {
        if (typeof part === 'string') this.addText(part);
        else if (isJsonObject(part)) this.addPart(part);
      }
    }
  }

  addPart(part: JsonObject): void {
    switch (part['type']) {
      case 'text':
      case 'input_text':
      case 'output_text':
        this.addText(part['text']);
        return;
      case 'refusal':
        this.addText(part['refusal']);
        return;
      case 'image_url':
      case 'input_image':
        this.#addImage(part);
        return;
      default:
        this.addUncounted();
    }
  }

  #addImage(part: JsonObject): void {
    const image = part['image_url'] ?? null;
    const url = isJsonObject(image) ? image['url'] : image;
    const detail = (isJsonObject(image) ? image['detail'] : undefined) ?? part['detail'];
    this.#images += 1;
    const size = typeof url === 'string' ? this.#sizeOf(url) : null;
    this.#tokens += imageTokens(this.#model, size, detailOf(detail));
  }
}

function detailOf(detail: Json | undefined): ImageDetail {
  return detail === 'low' || detail === 'high' || detail === 'original' ? detail : 'auto';
}
