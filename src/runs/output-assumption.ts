/** How long answers are taken to be before there is one: said by the user, else capped, else a range that is told. */
import { bareModelName } from '../pricing/encoding.js';

export interface TokenRange {
  readonly low: number;
  readonly high: number;
}

export type OutputBasis =
  /** `--output-tokens`; the cap of a request still holds. */
  | 'given'
  /** The request's own cap: an upper bound. */
  | 'cap'
  /** Nothing was said: a range wide enough for most work on documents. */
  | 'assumed';

export interface AssumedOutput extends TokenRange {
  readonly basis: OutputBasis;
}

/** A label at the low end, a summary of a page at the high one. */
export const ASSUMED_OUTPUT: TokenRange = { low: 50, high: 500 };
/** Reasoning is output that is paid for and never seen. */
export const ASSUMED_OUTPUT_WITH_REASONING: TokenRange = { low: 300, high: 3_000 };

export function assumeOutput(model: string, cap: number | null, given: TokenRange | null): AssumedOutput {
  if (given !== null) {
    return {
      low: Math.min(given.low, cap ?? given.low),
      high: Math.min(given.high, cap ?? given.high),
      basis: 'given',
    };
  }
  if (cap !== null) return { low: cap, high: cap, basis: 'cap' };
  return { ...assumedOutputOf(model), basis: 'assumed' };
}

export function assumedOutputOf(model: string): TokenRange {
  return reasons(model) ? ASSUMED_OUTPUT_WITH_REASONING : ASSUMED_OUTPUT;
}

/** OpenAI's o-series and the models since gpt-5 but for their chat variants. */
function reasons(model: string): boolean {
  const name = bareModelName(model);
  return /^o\d(?:-|$)|^gpt-[5-9]/.test(name) && !name.includes('-chat');
}
