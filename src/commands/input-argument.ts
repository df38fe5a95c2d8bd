/** How the commands that read an input take it. */
import type { Command } from 'commander';
import { inputWords } from '../ui/run-words.js';

/** `<input...>`: the action gets a list. */
export function addInputArgument(command: Command): Command {
  return command.argument(
    '<input...>',
    'a JSONL, CSV, TSV or text file (.gz too), a Parquet file, a SQLite database, several text files, or - for standard input',
  );
}

/** As messages call it. */
export function shownInput(inputs: readonly string[]): string {
  const [only = ''] = inputs;
  if (inputs.length > 1) return `${inputs.length} files`;
  return inputWords(only);
}
