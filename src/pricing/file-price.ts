import type { ModelPrice } from './model-price.js';

/** A price as a file states it. */
export interface FilePrice extends Pick<ModelPrice, 'tiers' | 'contextWindowTokens' | 'maxOutputTokens'> {
  /** Whose price it is, in the file's own words; null for whoever serves the model. */
  readonly servedBy: string | null;
}
