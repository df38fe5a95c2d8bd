import type { LineProblem } from '../core/line-problem.js';

/** An input line that cannot become a task. */
export interface BadLine extends LineProblem {
  /** 1-based. */
  readonly line: number;
  /** The line as it was, with U+FFFD for invalid bytes; null if it was too long to keep. */
  readonly text: string | null;
  /** The file's path, if each document is a file of its own. */
  readonly place?: string;
}
