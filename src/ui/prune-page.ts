/** The runs that a prune deletes. */
import type { OldRun } from '../runs/prune-runs.js';
import type { Appearance } from './colours.js';
import { formatAgo, formatCount } from './numbers.js';
import { inputWords, stateWord } from './run-words.js';
import { renderTable } from './table.js';

/** A header and a line a run, none wider than the stream. */
export function renderOldRuns(runs: readonly OldRun[], nowMs: number, appearance: Appearance): string[] {
  return renderTable(
    [
      { header: 'run' },
      { header: 'state' },
      { header: 'documents', align: 'right' },
      { header: 'last active' },
      { header: 'input' },
    ],
    runs.map(({ run, documents, lastActiveAtMs }) => [
      run.name,
      stateWord(run),
      formatCount(documents),
      formatAgo(nowMs - lastActiveAtMs),
      inputWords(run.inputPath),
    ]),
    appearance,
  );
}
