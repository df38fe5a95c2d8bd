/**
 * How many input tokens to reserve for a call. The estimate knows neither the server's tokenizer nor what else it
 * counts (tools, images, a chat template), so it is scaled by what the server has charged for this run's documents.
 */
import { estimateTokens } from './estimate.js';

export interface InputEstimator {
  /** Rather above than below what the server will charge for this text. */
  inputTokens(text: string): number;
  /** What the server charged for a text. */
  observe(text: string, inputTokens: number): void;
}

/** Roles and separators of a chat: a few tokens a message, a few for the reply (OpenAI cookbook). */
const CHAT_OVERHEAD_TOKENS = 8;
/** The largest ratio among this many answers rules, so that one odd document is forgotten again. */
const RATIOS_KEPT = 64;
const LEAST_RATIO = 0.5;
const LARGEST_RATIO = 20;

export function createInputEstimator(): InputEstimator {
  const ratios: number[] = [];
  let seen = 0;
  let ratio = 1;
  const plain = (text: string): number => estimateTokens(text) + CHAT_OVERHEAD_TOKENS;
  return {
    inputTokens: (text) => Math.ceil(plain(text) * ratio),
    observe(text, inputTokens) {
      if (!Number.isFinite(inputTokens) || inputTokens <= 0) return;
      ratios[seen % RATIOS_KEPT] = inputTokens / plain(text);
      seen += 1;
      ratio = Math.min(LARGEST_RATIO, Math.max(LEAST_RATIO, ...ratios));
    },
  };
}
