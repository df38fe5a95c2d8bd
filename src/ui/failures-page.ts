/** The dead letters of a run: failed documents by kind, each kind with an example and what to do about it. */
import type { FailureKind } from '../core/failure.js';
import { printable } from '../core/foreign-text.js';
import type { TaskError } from '../core/outcome.js';
import type { ResultRow } from '../core/result-row.js';
import type { Appearance } from './colours.js';
import { type Fact, factLines } from './facts.js';
import { adviceOn } from './failure-advice.js';
import { shellWord } from './next-command.js';
import { formatCount, formatQuantity } from './numbers.js';

export interface FailureExample {
  readonly key: string;
  readonly idIsNumber?: boolean | undefined;
  readonly line: number;
  readonly error: TaskError;
}

export interface FailureGroup {
  readonly kind: FailureKind;
  readonly count: number;
  /** The failed document that comes first in the input. */
  readonly example: FailureExample;
  /** How often each of the server's own codes occurred, the most frequent first. */
  readonly codes: readonly { readonly code: string; readonly count: number }[];
}

/** Collects failed rows into groups, one page after the other, and forgets all but an example of each kind. */
export class FailureGrouping {
  readonly #groups = new Map<
    FailureKind,
    { count: number; example: FailureExample; codes: Map<string, number> }
  >();

  /** Rows without an error are passed over. */
  add(rows: readonly ResultRow[]): void {
    for (const { key, idIsNumber, line, error } of rows) {
      if (error === null) continue;
      const group = this.#groups.get(error.kind) ?? {
        count: 0,
        example: { key, idIsNumber, line, error },
        codes: new Map(),
      };
      group.count += 1;
      if (error.code !== null) group.codes.set(error.code, (group.codes.get(error.code) ?? 0) + 1);
      this.#groups.set(error.kind, group);
    }
  }

  /** The largest group first. */
  groups(): FailureGroup[] {
    return [...this.#groups]
      .map(([kind, { count, example, codes }]) => ({
        kind,
        count,
        example,
        codes: [...codes]
          .map(([code, times]) => ({ code, count: times }))
          .sort((one, other) => other.count - one.count),
      }))
      .sort((one, other) => other.count - one.count);
  }
}

/** Messages hold whole request bodies at times. */
const LONGEST_MESSAGE = 400;
const MOST_CODES = 5;

/** The page, none of its lines wider than the stream unless a word is. */
export function renderFailures(
  runName: string,
  groups: readonly FailureGroup[],
  appearance: Appearance,
): string[] {
  const { colours } = appearance;
  const total = groups.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) return [`No document of ${printable(runName)} has failed.`];
  const lines = [`${formatQuantity(total, 'document')} of ${printable(runName)} failed.`];
  for (const group of groups) {
    lines.push('', `${colours.red.bold(group.kind)}  ${formatQuantity(group.count, 'document')}`);
    lines.push(...factLines(groupFacts(runName, group, appearance), appearance));
  }
  return lines;
}

function groupFacts(runName: string, group: FailureGroup, { colours, command }: Appearance): Fact[] {
  const { kind, example } = group;
  const { error } = example;
  const { meaning, advice, worthRetrying } = adviceOn(error);
  const status = error.httpStatus === null ? '' : ` (HTTP ${error.httpStatus})`;
  const facts: Fact[] = [
    { name: 'what', value: meaning },
    { name: 'example', value: `line ${formatCount(example.line)}, ${printable(example.key)}` },
    { name: 'message', value: `${shortened(printable(error.message))}${status}` },
  ];
  if (group.codes.length > 0) {
    const shown = group.codes
      .slice(0, MOST_CODES)
      .map(({ code, count }) => `${printable(code)} ${formatCount(count)}`);
    const more = group.codes.length > MOST_CODES ? [`${group.codes.length - MOST_CODES} more`] : [];
    facts.push({ name: 'codes', value: [...shown, ...more].join(' · ') });
  }
  if (error.requestId !== null) facts.push({ name: 'request id', value: printable(error.requestId) });
  facts.push({ name: 'try', value: advice });
  if (worthRetrying) {
    facts.push({
      name: 'then',
      value: command(`llm-batch retry ${shellWord(runName)} --kind ${kind}`),
      paint: colours.bold,
    });
  }
  return facts;
}

function shortened(message: string): string {
  return message.length <= LONGEST_MESSAGE ? message : `${message.slice(0, LONGEST_MESSAGE - 1)}…`;
}
