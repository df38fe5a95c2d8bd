import type { Settings } from '../config/settings.js';
import type { WantedInput } from '../runs/read-documents.js';
import type { CommandContext } from './context.js';

/** The input that the user named, as the settings say how to read it. */
export function wantedInput(
  { workingFolder, stdin }: CommandContext,
  { inputFormat, query, maxLineBytes }: Settings,
  names: readonly string[],
  spool: string | null = null,
): WantedInput {
  return { names, folder: workingFolder, stdin, spool, format: inputFormat, query, maxLineBytes };
}
