/** The columns of a Parquet file, nested ones too: lists become JSON arrays, structs and maps become JSON objects. */
import type { SchemaTree } from 'hyparquet';
import { isListLike, isMapLike } from 'hyparquet/src/schema.js';
import { leafOf, leafToJson } from './parquet-leaf.js';

/** Kinds of map keys that can be written as a name and read back from it. */
const MAP_KEYS = ['text', 'uuid', 'boolean', 'integer', 'long', 'date', 'timestamp', 'time'];

/** The JSON text of one value of a column, as hyparquet assembles it. @throws UnusableValue */
export type ValueToJson = (value: unknown) => string;

/** @returns null if the column, or something inside it, is neither text nor a number */
export function columnToJson(column: SchemaTree): ValueToJson | null {
  const single = singleToJson(column);
  if (single === null || column.element.repetition_type !== 'REPEATED') return single;
  return listToJson(single);
}

function singleToJson(column: SchemaTree): ValueToJson | null {
  const { element, children } = column;
  if (element.logical_type?.type === 'VARIANT') return null;
  if (children.length === 0) {
    const leaf = leafOf(element);
    return leaf === null ? null : (value) => (isNull(value) ? 'null' : leafToJson(leaf, value));
  }
  const [repeated] = children;
  if (repeated !== undefined && isListLike(column)) {
    const [item = repeated] = repeated.children;
    // In the older lists of two levels, the repeated element is the item itself.
    const itemToJson = repeated.children.length === 1 ? columnToJson(item) : singleToJson(repeated);
    return itemToJson === null ? null : listToJson(itemToJson);
  }
  const [mapKey, mapValue] = repeated?.children ?? [];
  if (mapKey !== undefined && mapValue !== undefined && isMapLike(column)) return mapToJson(mapKey, mapValue);
  const members = new Map<string, ValueToJson>();
  for (const child of children) {
    const childToJson = columnToJson(child);
    if (childToJson === null) return null;
    members.set(child.element.name, childToJson);
  }
  return objectToJson(JSON.stringify, (name) => members.get(name) as ValueToJson);
}

function listToJson(itemToJson: ValueToJson): ValueToJson {
  return (value) => (isNull(value) ? 'null' : `[${Array.from(value as unknown[], itemToJson).join(',')}]`);
}

/** The reader has already turned the keys into names. */
function mapToJson({ element }: SchemaTree, mapValue: SchemaTree): ValueToJson | null {
  const leaf = leafOf(element);
  const valueToJson = columnToJson(mapValue);
  if (leaf === null || valueToJson === null || !MAP_KEYS.includes(leaf.kind)) return null;
  const keyToJson = (name: string): string => {
    if (leaf.kind === 'text' || leaf.kind === 'uuid' || leaf.kind === 'boolean') return JSON.stringify(name);
    const json = leafToJson(leaf, BigInt(name));
    return json.startsWith('"') ? json : JSON.stringify(json);
  };
  return objectToJson(keyToJson, () => valueToJson);
}

function objectToJson(
  nameToJson: (name: string) => string,
  memberToJson: (name: string) => ValueToJson,
): ValueToJson {
  return (value) => {
    if (isNull(value)) return 'null';
    const members = Object.entries(value as object).map(
      ([name, member]) => `${nameToJson(name)}:${memberToJson(name)(member)}`,
    );
    return `{${members.join(',')}}`;
  };
}

function isNull(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}
