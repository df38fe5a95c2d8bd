/** The inverse of parquet-column.ts: a Parquet schema to write, and JSON values in its physical types. */
import { type ConvertedType, parquetSchema, type SchemaElement, type SchemaTree } from 'hyparquet';
import { isListLike, isMapLike } from 'hyparquet/src/schema.js';
import { type ExactJson, parseExact, stringifyExact } from '../core/exact-json.js';
import { leafFromJson, leafOf, type ParquetLeaf, UnusableValue } from './parquet-leaf.js';

/** @throws UnusableValue for JSON that does not fit the column */
type ValueFromJson = (json: ExactJson) => unknown;

export interface ColumnFromJson {
  readonly name: string;
  /** The column and what is inside it, depth first. */
  readonly elements: readonly SchemaElement[];
  readonly toValue: ValueFromJson;
}

/**
 * Columns for what `columnToJson` turned into JSON, in the types they had, with two exceptions: times of 96 bits, which
 * nobody writes any more, become nanoseconds, and the older lists of two levels become columns of JSON.
 * @param schema with the root, as in a file's footer
 */
export function columnsFromJson(schema: readonly SchemaElement[]): ColumnFromJson[] {
  return parquetSchema({ schema: [...schema] }).children.map((tree) => {
    const { name } = tree.element;
    if (hasRepeatedLeaf(tree)) return { name, elements: [jsonElement(name)], toValue: toJsonText };
    return { name, elements: elementsOf(tree), toValue: fromJson(tree) };
  });
}

/** The writer cannot write a repeated value without a group around it. */
function hasRepeatedLeaf({ element, children }: SchemaTree): boolean {
  if (children.length === 0) return element.repetition_type === 'REPEATED';
  return children.some(hasRepeatedLeaf);
}

function jsonElement(name: string): SchemaElement {
  return { name, type: 'BYTE_ARRAY', logical_type: { type: 'JSON' }, repetition_type: 'OPTIONAL' };
}

function toJsonText(json: ExactJson): string | null {
  return json === null ? null : stringifyExact(json);
}

function elementsOf({ element, children }: SchemaTree): SchemaElement[] {
  return [children.length === 0 ? writtenLeaf(element) : element, ...children.flatMap(elementsOf)];
}

/** The element as the writer needs it for the values of `leafFromJson`. */
function writtenLeaf(element: SchemaElement): SchemaElement {
  const { converted_type: _converted, logical_type: logical, ...plain } = element;
  const leaf = leafOf(element);
  if (leaf?.kind === 'json') return { ...plain, logical_type: { type: 'JSON' } };
  if (leaf?.kind === 'decimal') {
    const precision = logical?.type === 'DECIMAL' ? logical.precision : element.precision;
    return { ...plain, converted_type: 'DECIMAL', scale: leaf.scale, ...(precision && { precision }) };
  }
  if (logical?.type === 'INTEGER') {
    // The writer would store the logical type's width as 32 bits, which other readers refuse; the older type says the same.
    const converted = `${logical.isSigned ? '' : 'U'}INT_${logical.bitWidth}` as ConvertedType;
    return { ...plain, converted_type: converted };
  }
  if (element.type === 'INT96') {
    return {
      ...plain,
      type: 'INT64',
      logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'NANOS' },
    };
  }
  return element;
}

function fromJson(tree: SchemaTree): ValueFromJson {
  const single = singleFromJson(tree);
  return tree.element.repetition_type === 'REPEATED' ? listFromJson(single) : single;
}

function singleFromJson(tree: SchemaTree): ValueFromJson {
  const { element, children } = tree;
  if (children.length === 0) {
    const leaf = leafOf(element);
    if (leaf === null) throw new UnusableValue('cannot be written');
    return (json) => (json === null ? null : leafValue(leaf, json));
  }
  const [repeated] = children;
  if (repeated !== undefined && isListLike(tree)) {
    const [item = repeated] = repeated.children;
    return listFromJson(fromJson(item));
  }
  const [mapKey, mapValue] = repeated?.children ?? [];
  if (mapKey !== undefined && mapValue !== undefined && isMapLike(tree)) return mapFromJson(mapKey, mapValue);
  const members = children.map((child) => ({ name: child.element.name, toValue: fromJson(child) }));
  return (json) => {
    const object = objectOf(json);
    if (object === null) return null;
    // Null prototype: a member may be called __proto__.
    const value = Object.create(null) as Record<string, unknown>;
    for (const { name, toValue } of members) value[name] = toValue(object[name] ?? null);
    return value;
  };
}

function leafValue(leaf: ParquetLeaf, json: ExactJson): unknown {
  return leaf.kind === 'json' ? stringifyExact(json) : leafFromJson(leaf, json);
}

function listFromJson(itemFromJson: ValueFromJson): ValueFromJson {
  return (json) => {
    if (json === null) return null;
    if (!Array.isArray(json)) throw new UnusableValue('takes a list');
    return json.map(itemFromJson);
  };
}

/** JSON objects have names for keys; a key of another type is written as its JSON. */
function mapFromJson(key: SchemaTree, mapValue: SchemaTree): ValueFromJson {
  const keyLeaf = leafOf(key.element);
  const keyFromJson = fromJson(key);
  const valueFromJson = fromJson(mapValue);
  const isText = keyLeaf === null || ['text', 'uuid', 'date', 'timestamp', 'time'].includes(keyLeaf.kind);
  return (json) => {
    const object = objectOf(json);
    if (object === null) return null;
    return Object.entries(object).map(([name, value]) => ({
      key: keyFromJson(isText ? name : parseExact(name)),
      value: valueFromJson(value),
    }));
  };
}

function objectOf(json: ExactJson): Record<string, ExactJson> | null {
  if (json === null) return null;
  if (typeof json !== 'object' || Array.isArray(json)) throw new UnusableValue('takes an object');
  return json;
}
