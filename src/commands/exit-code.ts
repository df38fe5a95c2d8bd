import { EXIT_CODES, type ExitCode } from '../core/errors.js';
import type { SentRun } from '../runs/execute-run.js';

/**
 * What a script is told of runs that were sent: of all that became of them, what asks the most of the user.
 * @param isStopped the user has stopped it; a run may also be left to others that send it, which is no interruption
 */
export function exitCodeOf(runs: readonly SentRun[], isStopped: boolean): ExitCode {
  const reasons = new Set(runs.map(({ end }) => end.reason));
  if (isStopped) return EXIT_CODES.interrupted;
  if (reasons.has('halted') || reasons.has('limit_reached')) return EXIT_CODES.halted;
  // One that is left as it was asked to be has handed in what there was to hand in.
  const hasFailed = runs.some(({ end, summary }) => end.reason !== 'left' && summary.counts.failed > 0);
  return hasFailed ? EXIT_CODES.someFailed : EXIT_CODES.completed;
}
