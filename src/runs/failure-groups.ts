/** The failed documents of a run by kind, each kind with an example. */
import type { FailureKind } from '../core/failure.js';
import type { TaskError } from '../core/outcome.js';
import type { ResultRow } from '../core/result-row.js';
import type { Store } from '../store/store.js';
import { storedResults } from './stored-results.js';

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

/** @returns the largest group first */
export async function readFailures(store: Store, runId: number): Promise<FailureGroup[]> {
  const grouping = new FailureGrouping();
  for await (const page of storedResults(store, runId, 'failed')) grouping.add(page);
  return grouping.groups();
}
