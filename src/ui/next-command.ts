/** Commands for the user to copy. */
import { printable } from '../core/foreign-text.js';

/** A word for a POSIX shell, quoted only where it has to be; printable, for it stands in sentences. */
export function shellWord(word: string): string {
  const isPlain = word === '-' || /^[\w@%+=:,./][\w@%+=:,./-]*$/.test(word);
  return isPlain ? word : `'${printable(word).replaceAll("'", "'\\''")}'`;
}

export interface RunOutcome {
  readonly runName: string;
  /** Documents still to be done. */
  readonly open: number;
  readonly failed: number;
  readonly cancelled: boolean;
  readonly resultsPath: string | null;
}

/** The one command that most likely comes next. */
export function nextCommand(outcome: RunOutcome): string {
  const run = shellWord(outcome.runName);
  if (outcome.open > 0 && !outcome.cancelled) return `llm-batch resume ${run}`;
  if (outcome.failed > 0) return `llm-batch failures ${run}`;
  if (outcome.resultsPath !== null) return `head -n 3 ${shellWord(outcome.resultsPath)}`;
  return `llm-batch results ${run} -o -`;
}
