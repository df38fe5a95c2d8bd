import type { SentRun } from '../app/send-run.js';
import { EXIT_CODES, type ExitCode } from '../core/errors.js';

/** What a script is told of a run that was sent. */
export function exitCodeOf({ end, summary }: SentRun): ExitCode {
  if (end.reason === 'halted' || end.reason === 'limit_reached') return EXIT_CODES.halted;
  if (end.reason === 'stopped') return EXIT_CODES.interrupted;
  // As asked: what there is to hand in is handed in.
  if (end.reason === 'left') return EXIT_CODES.completed;
  return summary.counts.failed > 0 ? EXIT_CODES.someFailed : EXIT_CODES.completed;
}
