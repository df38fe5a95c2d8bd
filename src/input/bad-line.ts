/** What is wrong with one input line, without its place: the splitter and the parser know different halves. */
export interface LineProblem {
  /** One clause that says what is wrong and, where it is not plain, the way out. */
  readonly reason: string;
  /** The field at fault, as a dotted path, where one is. */
  readonly field?: string;
}

/** An input line that cannot become a task. */
export interface BadLine extends LineProblem {
  /** 1-based. */
  readonly line: number;
  /** The line as it was; invalid bytes as U+FFFD; null when it was too long to keep. */
  readonly text: string | null;
  /** The file's path where each document is a file of its own. */
  readonly place?: string;
}

export function isLineProblem(value: object): value is LineProblem {
  return 'reason' in value;
}
