/** One pass over an input for a command that only looks: a sign of progress where it takes long, Ctrl-C at any time. */

import type { CommandContext } from '../app/context.js';
import type { Settings } from '../config/settings.js';
import { type DocumentPage, readDocuments } from '../documents/read.js';
import { createRequestBuilder } from '../documents/request.js';
import { openInput } from '../input/input.js';
import type { PriceBook } from '../pricing/price-book.js';
import type { ImportProgress } from '../runs/import-input.js';
import type { RunSettings } from '../runs/run-settings.js';
import { appearanceOf } from '../ui/colours.js';
import { createProgress, EMPTY_SNAPSHOT, type ProgressSnapshot } from '../ui/progress.js';

/** What is done sooner needs no bar. */
const PROGRESS_AFTER_MS = 1_000;

export interface InputReading {
  readonly pages: AsyncIterable<DocumentPage>;
  /** Of the run that would send the input, with the prices of now. */
  readonly settings: RunSettings;
  readonly prices: PriceBook;
  readonly nowMs: number;
  readonly onProgress: (progress: ImportProgress) => void;
  /** Aborts at Ctrl-C. */
  readonly signal: AbortSignal;
}

/**
 * @param inputs paths, a pattern or `-`, as the user gave them
 * @param look goes through the pages once
 * @returns what `look` found; `interrupted` when the user stopped it
 * @throws LlmBatchError (exit 2) for settings that cannot be used, and as `openInput` and `readDocuments` do
 */
export async function readInput<Found>(
  context: CommandContext,
  settings: Settings,
  runSettings: RunSettings,
  inputs: readonly string[],
  look: (reading: InputReading) => Promise<Found>,
): Promise<Found | 'interrupted'> {
  // A template that cannot be compiled is told before a million lines are read.
  createRequestBuilder(runSettings.request);
  const { openPriceBook } = await import('../pricing/open-price-book.js');
  const prices = await openPriceBook(runSettings.pricesFile);
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
      signal: stopping.signal,
    });
    snapshot = { ...snapshot, importTotalBytes: input.totalBytes };
    try {
      const found = await look({
        pages: readDocuments(input, {
          settings: runSettings.request,
          maxLineBytes: settings.maxLineBytes,
        }),
        settings: runSettings,
        prices,
        nowMs: context.clock.now(),
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
