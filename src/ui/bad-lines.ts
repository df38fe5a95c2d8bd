/** The lines of an input that cannot become documents. */

import { printable } from '../core/foreign-text.js';
import { type Appearance, inCharacterSet } from './colours.js';
import { lineReason } from './line-words.js';
import { formatCount, formatQuantity } from './numbers.js';
import { inputWords } from './run-words.js';
import { displayWidth, hanging, padToWidth } from './width.js';

export interface BadLineNote {
  /** 1-based. */
  readonly line: number;
  readonly reason: string;
  /** The file's path where each document is a file of its own. */
  readonly place?: string;
}

/** More than anybody reads before mending the cause. */
export const MOST_BAD_LINES_SHOWN = 20;

/** Behind the path of a file, which may be long, the rest of a reason starts further left. */
const MOST_INDENT = 14;

/**
 * The report, at most twenty of the lines and the number of all.
 * Reasons are wrapped at spaces; a path that is wider than the stream stays whole.
 * @param first the first bad lines of the input, in their order; more than twenty are not looked at
 */
export function renderBadLines(
  first: readonly BadLineNote[],
  total: number,
  inputName: string,
  appearance: Appearance,
): string[] {
  const shown = first.slice(0, MOST_BAD_LINES_SHOWN);
  const numberColumns = Math.max(0, ...shown.map(({ line }) => formatCount(line).length));
  const lines = shown.flatMap(({ line, reason, place: file }) => {
    const place =
      file === undefined
        ? `  line ${padToWidth(formatCount(line), numberColumns, 'start')}  `
        : `  ${printable(file)}: `;
    // The end of a reason is what to mend, so it is wrapped and not cut.
    const indent = Math.min(displayWidth(place), MOST_INDENT);
    const room = appearance.columns - displayWidth(place);
    return hanging(appearance.colours.dim(place), printable(lineReason(reason)), indent, room);
  });
  const more =
    total > shown.length ? [appearance.colours.dim(`  … and ${formatCount(total - shown.length)} more`)] : [];
  const title = `${formatQuantity(total, 'bad line')} in ${printable(inputWords(inputName))}:`;
  return [title, ...lines, ...more].map((line) => inCharacterSet(line, appearance));
}
