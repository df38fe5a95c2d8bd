/** Named facts below each other, the way `status` and the summary of a run show them. */

import { printable } from '../core/foreign-text.js';
import { type Appearance, inCharacterSet } from './colours.js';
import { displayWidth, padToWidth, wrapToWidth } from './width.js';

export interface Fact {
  readonly name: string;
  readonly value: string;
  /** Colours the value; must not change its width. */
  readonly paint?: (text: string) => string;
}

export function fact(name: string, value: string, paint?: Fact['paint']): Fact {
  return { name, value, ...(paint && { paint }) };
}

/** Several of one name, which stands before the first. */
export function factsOf(name: string, values: readonly string[], paint?: Fact['paint']): Fact[] {
  return values.map((value, index) => fact(index === 0 ? name : '', value, paint));
}

/**
 * One line a fact, names in a column of their own, values wrapped at spaces so that no line is wider than the stream
 * (a path or a command that is wider stays whole). Values are made printable, so they may hold foreign text.
 */
export function factLines(facts: readonly Fact[], appearance: Appearance): string[] {
  const nameColumns = Math.max(0, ...facts.map(({ name }) => displayWidth(name)));
  const indent = 2 + nameColumns + 2;
  const lines: string[] = [];
  for (const { name, value, paint } of facts) {
    wrapToWidth(printable(value), Math.max(1, appearance.columns - indent)).forEach((part, index) => {
      const label =
        index === 0 ? appearance.colours.dim(padToWidth(name, nameColumns)) : ' '.repeat(nameColumns);
      lines.push(inCharacterSet(`  ${label}  ${paint === undefined ? part : paint(part)}`, appearance));
    });
  }
  return lines;
}

/** Parts with dots between them; empty and absent ones left out. */
export function dotted(parts: readonly (string | null)[]): string {
  return parts.filter((part) => part !== null && part !== '').join(' · ');
}
