/**
 * How many input tokens to reserve for a call. The estimate knows neither the server's tokenizer nor what else it
 * counts (tools, a chat template), so it is scaled by what the server has charged for this run's documents.
 */
import { estimateTokens } from './estimate.js';

export interface InputEstimator {
  /**
   * Rather above than below what the server will charge for this text.
   * @param otherTokens of parts that are no text, by the rule for them
   */
  inputTokens(text: string, otherTokens?: number): number;
  /** What the server charged for a text, other parts included. */
  observe(text: string, inputTokens: number, otherTokens?: number): void;
}

/** The largest ratio among this many answers rules, so that one odd document is forgotten again. */
const RATIOS_KEPT = 64;
const LEAST_RATIO = 0.5;
const LARGEST_RATIO = 20;

/** @param framingTokens that the server adds to those of a request's text */
export function createInputEstimator(framingTokens: number): InputEstimator {
  const ratios: number[] = [];
  let seen = 0;
  let ratio = 1;
  const plain = (text: string, otherTokens = 0): number => estimateTokens(text) + otherTokens + framingTokens;
  return {
    inputTokens: (text, otherTokens) => Math.ceil(plain(text, otherTokens) * ratio),
    observe(text, inputTokens, otherTokens) {
      if (!Number.isFinite(inputTokens) || inputTokens <= 0) return;
      ratios[seen % RATIOS_KEPT] = inputTokens / plain(text, otherTokens);
      seen += 1;
      ratio = Math.min(LARGEST_RATIO, Math.max(LEAST_RATIO, ...ratios));
    },
  };
}
