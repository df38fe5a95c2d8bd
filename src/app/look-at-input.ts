/** One pass over an input for a command that only looks: a sign of progress where it takes long, Ctrl-C at any time. */
import type { Settings } from '../config/settings.js';
import type { TellEvent } from '../core/event.js';
import { createRequestBuilder } from '../documents/request.js';
import { type InputReading, readPages, untilStopped } from '../runs/read-documents.js';
import type { RunSettings } from '../runs/run-settings.js';
import type { CommandContext } from './context.js';
import { wantedInput } from './wanted-input.js';
import { showProgress } from './watch-run.js';

/** What is done sooner needs no bar. */
const PROGRESS_AFTER_MS = 1_000;

/**
 * @param names paths, a pattern or `-`, as the user gave them
 * @param look goes through the pages once
 * @returns what `look` found; `interrupted` when the user stopped it
 * @throws LlmBatchError (exit 2) for settings that cannot be used, and as `readPages` does
 */
export async function lookAtInput<Found>(
  context: CommandContext,
  settings: Settings,
  runSettings: RunSettings,
  names: readonly string[],
  look: (reading: InputReading & { readonly tell: TellEvent }) => Promise<Found>,
): Promise<Found | 'interrupted'> {
  // A template that cannot be compiled is told before a million lines are read.
  createRequestBuilder(runSettings.request);
  const { openPriceBook } = await import('../pricing/open-price-book.js');
  const prices = await openPriceBook(runSettings.pricesFile);
  const tell = showProgress(context, settings, { readingShownAfterMs: PROGRESS_AFTER_MS });
  const input = wantedInput(context, settings, names);
  return untilStopped(input, context.interrupts, async (signal) => {
    tell({ type: 'import_started' });
    try {
      const found = await look({
        pages: readPages(input, { request: runSettings.request, signal, tell }),
        settings: runSettings,
        prices,
        nowMs: context.clock.now(),
        signal,
        tell,
      });
      return signal.aborted ? 'interrupted' : found;
    } catch (error) {
      // An input that was closed for it complains in its own words.
      if (signal.aborted) return 'interrupted';
      throw error;
    } finally {
      tell({ type: 'import_ended' });
    }
  });
}
