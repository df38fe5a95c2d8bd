import { EXIT_CODES, type ExitCode } from '../core/errors.js';
import type { DrainEnding } from '../core/event.js';
import type { RunSummary } from '../core/run-summary.js';

/** What a script is told of a run that was sent. */
export function exitCodeOf({ end, summary }: { end: DrainEnding; summary: RunSummary }): ExitCode {
  if (end.reason === 'halted' || end.reason === 'limit_reached') return EXIT_CODES.halted;
  if (end.reason === 'stopped') return EXIT_CODES.interrupted;
  return summary.counts.failed > 0 ? EXIT_CODES.someFailed : EXIT_CODES.completed;
}
