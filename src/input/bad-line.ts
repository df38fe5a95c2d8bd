/** What is wrong with one input line, apart from where it is: the splitter and the parser each know one half. */
export interface LineProblem {
  /** One clause that says what is wrong and, if that is not obvious, the way out. */
  readonly reason: string;
  /** The field at fault as a dotted path, if there is one. */
  readonly field?: string;
}

/** An input line that cannot become a task. */
export interface BadLine extends LineProblem {
  /** 1-based. */
  readonly line: number;
  /** The line as it was, with U+FFFD for invalid bytes; null if it was too long to keep. */
  readonly text: string | null;
  /** The file's path, if each document is a file of its own. */
  readonly place?: string;
}

export function isLineProblem(value: object): value is LineProblem {
  return 'reason' in value;
}
