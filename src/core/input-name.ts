/** How messages call what is read from a pipe. */
export const STANDARD_INPUT_NAME = 'standard input';

/** An input as the subject of a sentence. */
export function theInput(name: string): string {
  return name === STANDARD_INPUT_NAME ? 'Standard input' : `The input ${name}`;
}
