import { EXIT_CODES, type ExitCode } from '../core/errors.js';
import type { SentRun } from '../runs/execute-run.js';

/** What a script is told of runs that were sent: of all that became of them, what asks the most of the user. */
export function exitCodeOf(runs: readonly SentRun[]): ExitCode {
  const reasons = new Set(runs.map(({ end }) => end.reason));
  if (reasons.has('stopped')) return EXIT_CODES.interrupted;
  if (reasons.has('halted') || reasons.has('limit_reached')) return EXIT_CODES.halted;
  // One that is left as it was asked to be has handed in what there was to hand in.
  const hasFailed = runs.some(({ end, summary }) => end.reason !== 'left' && summary.counts.failed > 0);
  return hasFailed ? EXIT_CODES.someFailed : EXIT_CODES.completed;
}
