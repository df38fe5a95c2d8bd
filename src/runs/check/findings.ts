/** What a check of an input has found: by kind, each with its number and its first examples. */
import type { RemarkKind } from '../../core/remark.js';
import { BAD_LINE_KINDS, type BadLineKind } from './bad-line-kind.js';
import type { BatchRule } from './batch-file-rules.js';
import type { LengthProblemKind } from './document-length.js';
import type { RepeatKind } from './repeats.js';

export type FindingKind = BadLineKind | LengthProblemKind | RepeatKind | RemarkKind | BatchRule;

/** An error keeps a document from being answered; a warning is what the user may not have meant. */
export type FindingSeverity = 'error' | 'warning';

export interface FindingExample {
  /** 1-based; null where all of the input is meant. */
  readonly line: number | null;
  /** As the document names itself; null where it does not, or cannot be read. */
  readonly id: string | null;
  /** One clause. */
  readonly message: string;
  /** The file's path where each document is a file of its own. */
  readonly place?: string;
}

export interface Finding {
  readonly kind: FindingKind;
  readonly severity: FindingSeverity;
  /** All that were found; models or endpoints where the kind is about these. */
  readonly count: number;
  readonly examples: readonly FindingExample[];
}

/** More than anybody reads before mending the cause. */
export const MOST_EXAMPLES = 20;

/** In the order in which they are shown. */
const SEVERITIES: Readonly<Record<Exclude<FindingKind, BadLineKind>, FindingSeverity>> = {
  over_context: 'error',
  over_output_limit: 'error',
  over_tokens_per_minute: 'error',
  over_context_with_cap: 'warning',
  repeated_id: 'warning',
  repeated_document: 'warning',
  repeated_request: 'warning',
  template_unused: 'warning',
  foreign_template: 'warning',
  empty_field: 'warning',
  assistant_last: 'warning',
  batch_models: 'warning',
  batch_endpoints: 'warning',
  batch_id_repeated: 'warning',
  batch_id_missing: 'warning',
  batch_id_not_text: 'warning',
  batch_id_too_long: 'warning',
  batch_field_missing: 'warning',
  batch_lines: 'warning',
  batch_bytes: 'warning',
};

export const FINDING_KINDS: readonly FindingKind[] = [
  ...BAD_LINE_KINDS,
  ...(Object.keys(SEVERITIES) as (keyof typeof SEVERITIES)[]),
];

export class Findings {
  readonly #found = new Map<FindingKind, { count: number; readonly examples: FindingExample[] }>();

  add(kind: FindingKind, example: FindingExample): void {
    const found = this.#found.get(kind) ?? { count: 0, examples: [] };
    found.count += 1;
    if (found.examples.length < MOST_EXAMPLES) found.examples.push(example);
    this.#found.set(kind, found);
  }

  /** Errors first. */
  list(): Finding[] {
    return FINDING_KINDS.flatMap((kind) => {
      const found = this.#found.get(kind);
      return found === undefined ? [] : [{ kind, severity: severityOf(kind), ...found }];
    });
  }
}

export function severityOf(kind: FindingKind): FindingSeverity {
  return Object.hasOwn(SEVERITIES, kind) ? SEVERITIES[kind as keyof typeof SEVERITIES] : 'error';
}
