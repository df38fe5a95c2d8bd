/** Aligned plain tables that fit the terminal. */

import { printable } from '../core/foreign-text.js';
import { type Appearance, inCharacterSet } from './colours.js';
import { displayWidth, padToWidth, truncateToWidth } from './width.js';

export interface TableColumn {
  readonly header: string;
  /** Numbers read best at the right. Default: left. */
  readonly align?: 'left' | 'right';
}

const GAP = '  ';
/** Below this a column says nothing any more. */
const NARROWEST_COLUMN = 4;

/**
 * The header and a line a row. When the table is wider than the stream, the widest column gives way, again and again;
 * when even that does not help, lines are cut at the edge. Cells are made printable, so they may hold foreign text.
 */
export function renderTable(
  tableColumns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
  appearance: Appearance,
): string[] {
  const { columns } = appearance;
  const cells = rows.map((row) => tableColumns.map((_, index) => printable(row[index] ?? '')));
  const widths = tableColumns.map(({ header }, index) =>
    Math.max(displayWidth(header), ...cells.map((row) => displayWidth(row[index] ?? ''))),
  );
  shrink(widths, columns - GAP.length * (tableColumns.length - 1));

  const line = (texts: readonly string[]): string => {
    const parts = texts.map((text, index) => {
      const width = widths[index] ?? 0;
      const side = tableColumns[index]?.align === 'right' ? 'start' : 'end';
      return padToWidth(truncateToWidth(text, width), width, side);
    });
    return inCharacterSet(truncateToWidth(parts.join(GAP).trimEnd(), columns), appearance);
  };
  const header = line(tableColumns.map(({ header: text }) => text));
  return [appearance.colours.dim(header), ...cells.map(line)];
}

function shrink(widths: number[], room: number): void {
  let excess = widths.reduce((sum, width) => sum + width, 0) - room;
  while (excess > 0) {
    const widest = Math.max(...widths);
    if (widest <= NARROWEST_COLUMN) return;
    widths[widths.indexOf(widest)] = widest - 1;
    excess -= 1;
  }
}
