/**
 * How many input tokens to reserve for a call. The estimate knows neither the server's tokenizer nor what else it
 * counts (tools, a chat template), so it is scaled by what the server has charged for this run's documents.
 */

export interface InputEstimator {
  /**
   * Counts a text, which takes a pass over it.
   * @param otherTokens of the parts that are not text, by their own rule
   */
  measure(text: string, otherTokens?: number): MeasuredInput;
}

export interface MeasuredInput {
  /** Rather above than below what the server will charge for it, by what it has charged for others so far. */
  tokens(): number;
  /** What the server charged for it, other parts included. */
  observe(inputTokens: number): void;
}

/** The largest ratio among this many answers counts, so that one odd document is forgotten in time. */
const RATIOS_KEPT = 64;
const LEAST_RATIO = 0.5;
const LARGEST_RATIO = 20;

/** @param framingTokens that the server adds to those of a request's text */
export function createInputEstimator(framingTokens: number): InputEstimator {
  const ratios: number[] = [];
  let seen = 0;
  let ratio = 1;
  return {
    measure(text, otherTokens = 0) {
      const plain = estimateTokens(text) + otherTokens + framingTokens;
      return {
        tokens: () => Math.ceil(plain * ratio),
        observe(inputTokens) {
          if (!Number.isFinite(inputTokens) || inputTokens <= 0) return;
          ratios[seen % RATIOS_KEPT] = inputTokens / plain;
          seen += 1;
          ratio = Math.min(LARGEST_RATIO, Math.max(LEAST_RATIO, ...ratios));
        },
      };
    },
  };
}

/**
 * A token count cheap enough for every call: no tokenizer, one pass, never throws. It is for admission (what to
 * reserve before a call), so it errs upwards; money and context checks need a real tokenizer.
 *
 * Byte-pair encodings (cl100k, o200k and their kin) cut text into runs of one kind before they merge, so runs
 * are what is counted: a short word is one token and a longer one about a token per five letters, digits go in
 * threes, a run of punctuation in pairs, a space belongs to the word after it. Accented and Cyrillic letters are
 * half a token, ideographs and most other scripts about one, scripts with few merges and emoji more.
 */
export function estimateTokens(text: string): number {
  let tokens = 0;
  let runLength = 0;
  let runKind: CharacterKind = 'space';
  for (let index = 0; index < text.length; index += 1) {
    const kind = kindOf(text.charCodeAt(index));
    if (kind === runKind) {
      runLength += 1;
      continue;
    }
    tokens += tokensOfRun(runKind, runLength);
    runKind = kind;
    runLength = 1;
  }
  return Math.ceil(tokens + tokensOfRun(runKind, runLength));
}

type CharacterKind =
  | 'lower'
  | 'upper'
  | 'digit'
  | 'space'
  | 'newline'
  | 'punctuation'
  | 'letter'
  | 'wide'
  | 'rare';

function kindOf(unit: number): CharacterKind {
  if (unit >= 0x61 && unit <= 0x7a) return 'lower';
  if (unit === 0x20) return 'space';
  if (unit < 0x80) {
    if (unit >= 0x41 && unit <= 0x5a) return 'upper';
    if (unit >= 0x30 && unit <= 0x39) return 'digit';
    return unit < 0x20 ? 'newline' : 'punctuation';
  }
  // Latin with accents and Cyrillic: encodings have many merges for them.
  if (unit < 0x0370 || (unit >= 0x0400 && unit < 0x0530) || (unit >= 0x1e00 && unit < 0x1f00))
    return 'letter';
  // Greek, Hebrew, Arabic; kana, ideographs, Hangul, full-width forms: about a token each in older encodings.
  if (unit < 0x0700 || (unit >= 0x3000 && unit < 0xd800) || unit >= 0xf900) return 'wide';
  // Indic and South-East Asian scripts, symbols, and the surrogate halves of emoji and rare ideographs.
  return 'rare';
}

function tokensOfRun(kind: CharacterKind, length: number): number {
  if (length === 0) return 0;
  switch (kind) {
    case 'lower':
      return Math.max(1, length / 5);
    case 'upper':
      return length === 1 ? 0.6 : length / 2;
    case 'digit':
      return Math.ceil(length / 3);
    case 'space':
      return length === 1 ? 0.1 : 1 + length / 16;
    case 'newline':
      return 1 + length / 16;
    case 'punctuation':
      return 0.4 + length * 0.6;
    case 'letter':
      return 0.5 + length / 2;
    case 'wide':
      return length * 1.2;
    case 'rare':
      return length * 1.5;
  }
}
