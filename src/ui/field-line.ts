/** A line of fields that always fits: what matters least gets shorter first, and goes first. */
import { printable } from '../core/foreign-text.js';
import { displayWidth } from './width.js';

export type Paint = (text: string) => string;

export interface Field {
  /** The field in full, then shorter ways to say it. */
  readonly variants: readonly [string, ...string[]];
  /** The field with the lowest importance gives way first. */
  readonly importance: number;
  /** Colours the text; must not change its width. */
  readonly paint?: Paint;
}

/** Between fields; three columns. */
const SEPARATOR = ' · ';

/**
 * The fields in their order, separated by dots, in at most `columns` columns. When they do not fit, every field is cut
 * down to its shortest variant from the least important on, then fields are dropped, and at last the room that is left
 * goes back to the most important ones.
 */
export function fieldLine(fields: readonly Field[], columns: number, paintSeparator: Paint): string {
  const shown = fieldsThatFit(fields, columns);
  return shown
    .map(({ field, text }) => (field.paint === undefined ? text : field.paint(text)))
    .join(paintSeparator(SEPARATOR));
}

interface Shown {
  readonly field: Field;
  readonly text: string;
}

function fieldsThatFit(fields: readonly Field[], columns: number): Shown[] {
  const choices = new Map<Field, number>(fields.map((field) => [field, 0]));
  const byImportance = [...fields].sort((one, other) => one.importance - other.importance);
  const fits = (): boolean => widthOf(fields, choices) <= columns;

  for (const field of byImportance) {
    while (!fits() && (choices.get(field) ?? 0) < field.variants.length - 1) {
      choices.set(field, (choices.get(field) ?? 0) + 1);
    }
  }
  for (const field of byImportance) {
    if (fits()) break;
    choices.delete(field);
  }
  for (const field of byImportance.reverse()) {
    for (let variant = 0; variant < (choices.get(field) ?? 0); variant += 1) {
      const before = choices.get(field) ?? 0;
      choices.set(field, variant);
      if (fits()) break;
      choices.set(field, before);
    }
  }
  return fields
    .filter((field) => choices.has(field))
    .map((field) => ({ field, text: textOf(field, choices) }));
}

function textOf(field: Field, choices: ReadonlyMap<Field, number>): string {
  return printable(field.variants[choices.get(field) ?? 0] ?? field.variants[0]);
}

function widthOf(fields: readonly Field[], choices: ReadonlyMap<Field, number>): number {
  let width = 0;
  let count = 0;
  for (const field of fields) {
    if (!choices.has(field)) continue;
    width += displayWidth(textOf(field, choices));
    count += 1;
  }
  return width + Math.max(0, count - 1) * SEPARATOR.length;
}
