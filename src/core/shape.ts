/** Whether a JSON value that came from outside has the fields and types that the program expects. */
import { isJsonObject } from './json.js';

/** Where a value does not fit: the path of its first odd field, `''` for the value itself; null when it fits. */
export type Shape = (value: unknown) => string | null;

export const text = test((value) => typeof value === 'string');
export const truth = test((value) => typeof value === 'boolean');
/** A finite number that is not negative. */
export const amount = test((value) => typeof value === 'number' && Number.isFinite(value) && value >= 0);
/** A whole number of at least 1. */
export const positive = test((value) => Number.isSafeInteger(value) && (value as number) >= 1);
export const anyObject = test(isJsonObject);

export function oneOf(...words: readonly unknown[]): Shape {
  return test((value) => words.includes(value));
}

/** Null, and a field that is not there. */
export function orNull(shape: Shape): Shape {
  return (value) => (value === null || value === undefined ? null : shape(value));
}

export function either(...shapes: readonly Shape[]): Shape {
  return test((value) => shapes.some((shape) => shape(value) === null));
}

export function listOf(shape: Shape): Shape {
  return (value) => {
    if (!Array.isArray(value)) return '';
    return firstOdd(value.map((item, index) => [`[${index}]`, shape(item)]));
  };
}

export function recordOf(shape: Shape): Shape {
  return (value) =>
    isJsonObject(value)
      ? firstOdd(Object.entries(value).map(([name, item]) => [`.${name}`, shape(item)]))
      : '';
}

/** Other fields may be there. */
export function objectOf(fields: Readonly<Record<string, Shape>>): Shape {
  return (value) =>
    isJsonObject(value)
      ? firstOdd(Object.entries(fields).map(([name, shape]) => [`.${name}`, shape(value[name])]))
      : '';
}

function test(fits: (value: unknown) => boolean): Shape {
  return (value) => (fits(value) ? null : '');
}

function firstOdd(parts: readonly (readonly [place: string, odd: string | null])[]): string | null {
  const found = parts.find(([, odd]) => odd !== null);
  return found === undefined ? null : `${found[0]}${found[1] ?? ''}`;
}
