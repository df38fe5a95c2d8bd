/** One pass over an input for a command that only looks: a sign of progress where it takes long, Ctrl-C at any time. */
import type { Settings } from '../config/settings.js';
import { openInput } from '../documents/input.js';
import { type DocumentPage, readDocuments } from '../documents/read.js';
import type { RequestSettings } from '../documents/request.js';
import type { ImportProgress } from '../runs/import-input.js';
import { appearanceOf } from '../ui/colours.js';
import { createProgress, EMPTY_SNAPSHOT, type ProgressSnapshot } from '../ui/progress.js';
import type { CommandContext } from './context.js';

/** What is done sooner needs no bar. */
const PROGRESS_AFTER_MS = 1_000;

export interface InputReading {
  readonly pages: AsyncIterable<DocumentPage>;
  readonly onProgress: (progress: ImportProgress) => void;
  /** Aborts at Ctrl-C. */
  readonly signal: AbortSignal;
}

/**
 * @param inputs paths, a pattern or `-`, as the user gave them
 * @param look goes through the pages once
 * @returns what `look` found; `interrupted` when the user stopped it
 * @throws LlmBatchError (exit 2) as `openInput` and `readDocuments` do
 */
export async function readInput<Found>(
  context: CommandContext,
  settings: Settings,
  request: RequestSettings,
  inputs: readonly string[],
  look: (reading: InputReading) => Promise<Found>,
): Promise<Found | 'interrupted'> {
  const stopping = new AbortController();
  let snapshot: ProgressSnapshot = { ...EMPTY_SNAPSHOT, phase: 'importing' };
  const progress = createProgress({
    stream: context.stderr,
    environment: context.environment,
    appearance: appearanceOf(context.stderr, context.environment, settings.color),
    clock: context.clock,
    quiet: settings.quiet || settings.logJson,
    snapshot: () => snapshot,
  });
  const stopListening = context.interrupts.subscribe(() => {
    stopping.abort();
    // A read that waits for whoever writes there would not notice.
    if (inputs.includes('-')) context.stdin.destroy();
  });
  const cancelStart = context.clock.after(PROGRESS_AFTER_MS, () => progress.start());
  try {
    const input = await openInput(inputs, {
      cwd: context.workingFolder,
      stdin: context.stdin,
      format: settings.inputFormat,
      query: settings.query,
    });
    snapshot = { ...snapshot, importTotalBytes: input.totalBytes };
    try {
      const found = await look({
        pages: readDocuments(input, { settings: request, maxLineBytes: settings.maxLineBytes }),
        signal: stopping.signal,
        onProgress({ documents, bytesRead }) {
          snapshot = {
            ...snapshot,
            importedDocuments: documents,
            importedBytes: bytesRead,
            total: documents,
          };
        },
      });
      return stopping.signal.aborted ? 'interrupted' : found;
    } finally {
      await input.close();
    }
  } catch (error) {
    // An input that was closed for it complains in its own words.
    if (stopping.signal.aborted) return 'interrupted';
    throw error;
  } finally {
    cancelStart();
    progress.stop();
    stopListening();
  }
}
