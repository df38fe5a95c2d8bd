/** How long answers are taken to be before there is one: what the user says, else a range that is told; never over a cap. */
import { bareModelName } from '../../pricing/encoding.js';

export interface TokenRange {
  readonly low: number;
  readonly high: number;
}

export type OutputBasis =
  /** `--output-tokens`; the cap of a request still holds. */
  | 'given'
  /** The request's own cap is the long end; most answers stop before it, so the short end is as without one. */
  | 'cap'
  /** Its endpoint generates nothing. */
  | 'none'
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
  if (cap === 0) return { low: 0, high: 0, basis: 'none' };
  if (given !== null) {
    return {
      low: Math.min(given.low, cap ?? given.low),
      high: Math.min(given.high, cap ?? given.high),
      basis: 'given',
    };
  }
  const assumed = assumedOutputOf(model);
  if (cap !== null) return { low: Math.min(assumed.low, cap), high: cap, basis: 'cap' };
  return { ...assumed, basis: 'assumed' };
}

export function assumedOutputOf(model: string): TokenRange {
  return reasons(model) ? ASSUMED_OUTPUT_WITH_REASONING : ASSUMED_OUTPUT;
}

/** OpenAI's o-series and the models since gpt-5 but for their chat variants. */
function reasons(model: string): boolean {
  const name = bareModelName(model);
  return /^o\d(?:-|$)|^gpt-[5-9]/.test(name) && !name.includes('-chat');
}
