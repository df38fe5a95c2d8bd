/** Counts the tokens of a text in bounded time, whatever is in it. */
import type { CountTokens } from './encoding.js';

export interface TextTokens {
  readonly tokens: number;
  /** True if the text was too long to count whole. */
  readonly sampled: boolean;
}

/**
 * The time for merging grows with the square of an unbroken run (of letters, of spaces, of punctuation): a run of 20,000
 * ideographs takes seconds. A run is cut when its weight reaches this, which adds about a token per cut at most.
 */
const RUN_WEIGHT = 2_000;
/** An ideograph is three bytes and few of them merge, so a run of them is cut at 125. */
const WIDE_CHARACTER_WEIGHT = 16;
/** A shorter text cannot hold a run that is too heavy. */
const SHORT_TEXT = RUN_WEIGHT / WIDE_CHARACTER_WEIGHT;

/** About 100,000 tokens of English. Counting a longer text whole would hold up everything else. */
const COUNTED_WHOLE_CHARACTERS = 400_000;
const SAMPLE_CHARACTERS = 4_000;

/**
 * @returns the tokens of `text`; of a text above 400,000 characters an estimate from slices spread evenly over
 * it (2 % off at most in mixed text), since 32 MiB in one document would otherwise block for seconds
 */
export function countTextTokens(text: string, countTokens: CountTokens): TextTokens {
  if (text.length <= COUNTED_WHOLE_CHARACTERS)
    return { tokens: countWhole(text, countTokens), sampled: false };
  const samples = COUNTED_WHOLE_CHARACTERS / SAMPLE_CHARACTERS;
  const stride = text.length / samples;
  let tokens = 0;
  for (let sample = 0; sample < samples; sample += 1) {
    const start = Math.floor(sample * stride);
    tokens += countWhole(text.slice(start, start + SAMPLE_CHARACTERS), countTokens);
  }
  return { tokens: Math.round((tokens / COUNTED_WHOLE_CHARACTERS) * text.length), sampled: true };
}

function countWhole(text: string, countTokens: CountTokens): number {
  if (text.length <= SHORT_TEXT) return countTokens(text);
  let tokens = 0;
  let start = 0;
  let weight = 0;
  let kind: RunKind = 'space';
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    const kindHere = runKindOf(unit);
    if (kindHere !== kind) {
      kind = kindHere;
      weight = 0;
    }
    const own = unit < 0x80 ? 1 : WIDE_CHARACTER_WEIGHT;
    const isLowSurrogate = unit >= 0xdc00 && unit <= 0xdfff;
    if (weight + own > RUN_WEIGHT && !isLowSurrogate) {
      tokens += countTokens(text.slice(start, index));
      start = index;
      weight = 0;
    }
    weight += own;
  }
  return tokens + countTokens(start === 0 ? text : text.slice(start));
}

type RunKind = 'letter' | 'digit' | 'space' | 'punctuation';

/**
 * Before they merge, the encodings cut a text where the kind of character changes. What is not ASCII counts as a letter,
 * except East Asian punctuation; a mistake here means one more cut, never a run that is too long.
 */
function runKindOf(unit: number): RunKind {
  if (unit < 0x80) {
    if (unit >= 0x61 && unit <= 0x7a) return 'letter';
    if (unit === 0x20 || (unit >= 0x09 && unit <= 0x0d)) return 'space';
    if (unit >= 0x41 && unit <= 0x5a) return 'letter';
    return unit >= 0x30 && unit <= 0x39 ? 'digit' : 'punctuation';
  }
  const isEastAsianPunctuation =
    (unit >= 0x3001 && unit <= 0x3003) ||
    (unit >= 0xff01 && unit <= 0xff0f) ||
    (unit >= 0xff1a && unit <= 0xff20);
  return isEastAsianPunctuation ? 'punctuation' : 'letter';
}
