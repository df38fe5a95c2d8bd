/** The runs of a store, a line each. */
import type { RunRecord } from '../core/run.js';
import type { RunSummary } from '../core/run-summary.js';
import type { Appearance } from './colours.js';
import { dotted } from './facts.js';
import { formatAgo, formatCount } from './numbers.js';
import { inputWords, shownPath, stateWord } from './run-words.js';
import { knownCost, openOf, totalOf } from './summary-facts.js';
import { renderTable } from './table.js';

export interface ListedRun {
  readonly run: RunRecord;
  readonly summary: RunSummary;
  /** A process imports or sends it now. */
  readonly isBusy: boolean;
}

/**
 * A header and a line a run, none wider than the stream.
 * @param workingFolder paths inside it are shown as they are named there
 */
export function renderRunList(
  runs: readonly ListedRun[],
  nowMs: number,
  workingFolder: string,
  appearance: Appearance,
): string[] {
  return renderTable(
    [
      { header: 'run' },
      { header: 'state' },
      { header: 'documents', align: 'right' },
      { header: 'left' },
      { header: 'cost', align: 'right' },
      { header: 'age' },
      { header: 'input' },
    ],
    runs.map(({ run, summary, isBusy }) => [
      run.name,
      isBusy ? 'running' : stateWord(run),
      formatCount(totalOf(summary)),
      dotted([
        openOf(summary) > 0 ? `${formatCount(openOf(summary))} pending` : null,
        summary.counts.failed > 0 ? `${formatCount(summary.counts.failed)} failed` : null,
      ]),
      run.simulated ? 'simulated' : knownCost(summary),
      formatAgo(nowMs - run.createdAtMs),
      inputWords(shownPath(run.inputPath, workingFolder)),
    ]),
    appearance,
  );
}
