/** What is wrong with one line, without its place: splitter, parser and endpoint know different parts of the matter. */
export interface LineProblem {
  /** One clause that says what is wrong and, where it is not plain, the way out. */
  readonly reason: string;
  /** The field at fault, as a dotted path, where one is. */
  readonly field?: string;
}

export function isLineProblem(value: object): value is LineProblem {
  return 'reason' in value;
}
