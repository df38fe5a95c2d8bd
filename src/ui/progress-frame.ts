/** Draws one moment of a run as the one or two lines of the progress bar. Pure: the same snapshot, the same lines. */

import type { ProgressSnapshot } from '../core/progress-snapshot.js';
import { drawBar } from './bar.js';
import { type Appearance, inCharacterSet } from './colours.js';
import { fieldLine } from './field-line.js';
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatPercent,
  formatQuantity,
  formatRemaining,
} from './numbers.js';
import { runningFields, stoppingFields } from './progress-fields.js';
import { displayWidth, padToWidth } from './width.js';

export interface FrameView {
  /** Columns that may be used. */
  readonly columns: number;
  readonly appearance: Appearance;
  /** Since the display began. */
  readonly elapsedMs: number;
  /** The last frame, which stays on the screen: one line, and no more promises. */
  readonly ended: boolean;
}

/** A longer bar shows nothing more and tears the numbers away from the eye. */
const LONGEST_BAR = 60;
/** A shorter one is no bar. */
const SHORTEST_BAR = 8;
/** `42.0%` and the like. */
const PERCENT_COLUMNS = 5;
/** The longest of the usual times: room for it is kept, so that the bar does not breathe with every second. */
const TIME_COLUMNS = 'ETA 23 h 59 min'.length;

/** The lines of the frame, none wider than `view.columns`. */
export function renderFrame(snapshot: ProgressSnapshot, view: FrameView): string[] {
  const lines = snapshot.phase === 'importing' ? [importLine(snapshot, view)] : runLines(snapshot, view);
  return lines.map((line) => inCharacterSet(line, view.appearance));
}

function runLines(snapshot: ProgressSnapshot, view: FrameView): string[] {
  const { colours } = view.appearance;
  const done = snapshot.completed + snapshot.failed;
  const total = formatCount(snapshot.total);
  const count = `${padToWidth(formatCount(done), displayWidth(total), 'start')}/${total}`;
  const bar = barLine(
    {
      share: snapshot.total > 0 ? done / snapshot.total : 1,
      failedShare: snapshot.total > 0 ? snapshot.failed / snapshot.total : 0,
      percent: snapshot.total > 0 ? formatPercent(done, snapshot.total) : '100%',
      count,
      shortCount: formatCount(done),
      time: timeText(snapshot, view),
    },
    view,
  );
  if (view.ended) return [bar];
  const fields =
    snapshot.phase === 'stopping' ? stoppingFields(snapshot, colours) : runningFields(snapshot, colours);
  // Below the bar's own left edge where there is room for it.
  const indent = view.columns >= 72 ? PERCENT_COLUMNS + 1 : 0;
  const details = fieldLine(fields, view.columns - indent, colours.dim);
  return [bar, ' '.repeat(indent) + details];
}

function timeText(snapshot: ProgressSnapshot, view: FrameView): string {
  if (view.ended) {
    const complete = snapshot.completed + snapshot.failed >= snapshot.total;
    return `${complete ? 'in' : 'after'} ${formatDuration(view.elapsedMs)}`;
  }
  return snapshot.phase === 'running' && snapshot.etaMs !== null
    ? `ETA ${formatRemaining(snapshot.etaMs)}`
    : '';
}

function importLine(snapshot: ProgressSnapshot, view: FrameView): string {
  const { colours } = view.appearance;
  const { importedBytes, importTotalBytes } = snapshot;
  const documents = formatQuantity(snapshot.importedDocuments, 'document');
  if (importTotalBytes === null || importTotalBytes <= 0) {
    return fieldLine(
      [
        { variants: [`reading ${documents}`, documents], importance: 2 },
        { variants: [formatBytes(importedBytes)], importance: 1, paint: colours.dim },
      ],
      view.columns,
      colours.dim,
    );
  }
  return barLine(
    {
      share: importedBytes / importTotalBytes,
      failedShare: 0,
      percent: formatPercent(importedBytes, importTotalBytes),
      count: `reading ${documents}`,
      shortCount: documents,
      time: `${formatBytes(importedBytes)} of ${formatBytes(importTotalBytes)}`,
    },
    view,
  );
}

interface BarContent {
  readonly share: number;
  readonly failedShare: number;
  readonly percent: string;
  readonly count: string;
  /** For a terminal that has no room for a bar. */
  readonly shortCount: string;
  readonly time: string;
}

/** `percent bar count · time`, giving up the time, then the bar, then the count as columns get scarce. */
function barLine(content: BarContent, view: FrameView): string {
  const { colours } = view.appearance;
  const percent = padToWidth(content.percent, PERCENT_COLUMNS, 'start');
  const fixed = PERCENT_COLUMNS + 2 + displayWidth(content.count);
  // The time keeps its room even when it is not known yet, so that the bar keeps its length.
  const timeColumns = 3 + Math.max(TIME_COLUMNS, displayWidth(content.time));
  const withTime = view.columns - fixed - timeColumns;
  const withoutTime = view.columns - fixed;
  const time = content.time === '' ? '' : `${colours.dim(' · ')}${content.time}`;

  if (withTime >= SHORTEST_BAR) {
    const cells = Math.min(LONGEST_BAR, withTime);
    return `${colours.bold(percent)} ${drawBar(content, cells, colours)} ${content.count}${time}`;
  }
  if (withoutTime >= SHORTEST_BAR) {
    return `${colours.bold(percent)} ${drawBar(content, withoutTime, colours)} ${content.count}`;
  }
  return fieldLine(
    [
      { variants: [content.percent], importance: 2, paint: colours.bold },
      { variants: [content.count.trim(), content.shortCount], importance: 1 },
    ],
    view.columns,
    colours.dim,
  );
}
