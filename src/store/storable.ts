/**
 * What comes from documents and servers is made storable before a transaction begins: an answer that was paid
 * for must never be refused by a column.
 */

/** In Node 20, but in TypeScript's library from ES2024 on only. */
interface WellFormable {
  toWellFormed(): string;
}

/**
 * Lone surrogates become U+FFFD: SQLite would write them as invalid UTF-8, which reads back as three characters, and
 * PostgreSQL would refuse them. NUL is kept, where it must be by another name (see the backend).
 */
export function storableText(text: string): string {
  return (text as unknown as WellFormable).toWellFormed();
}

export function storableTextOrNull(text: string | null): string | null {
  return text === null ? null : storableText(text);
}

/** Rounded and kept within what an INTEGER column and a JavaScript number both hold exactly; NaN gives 0. */
export function storableInteger(value: number): number {
  if (Number.isSafeInteger(value)) return value;
  if (Number.isNaN(value)) return 0;
  return Math.round(Math.min(Number.MAX_SAFE_INTEGER, Math.max(Number.MIN_SAFE_INTEGER, value)));
}

export function storableIntegerOrNull(value: number | null): number | null {
  return value === null ? null : storableInteger(value);
}

/** SQLite and JSON turn NaN into NULL, which a NOT NULL column refuses. */
export function storableReal(value: number): number {
  return Number.isNaN(value) ? 0 : value;
}

/** A count of tokens, whatever a server said. */
export function storableCount(value: number): number {
  return value > 0 ? storableInteger(value) : 0;
}
