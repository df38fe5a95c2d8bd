/** A run: what the user starts, one input under one set of settings. */
import type { JsonObject } from './json.js';

export type RunStatus =
  /** Documents are still being added; a crash leaves it here and `run` on the same input goes on. */
  | 'importing'
  /** Has or may have open tasks. */
  | 'open'
  /** Every task is completed or failed. */
  | 'finished'
  /** Ended for good by `cancel`. */
  | 'cancelled';

export interface RunRecord {
  readonly id: number;
  /** Unique in the store. */
  readonly name: string;
  readonly status: RunStatus;
  /** Absolute path of the input, or `-` for stdin. */
  readonly inputPath: string;
  /** True when its answers come from the simulator. */
  readonly simulated: boolean;
  /** Everything needed to go on without the input file: templates, model, limits. Never a key. */
  readonly settings: JsonObject;
  /** What was seen of it, when it was handed in and while it was drained; apart from its settings, which others may change. */
  readonly observations: readonly RunObservation[];
  readonly createdAtMs: number;
  /** When the last drain ended, whatever way. */
  readonly stoppedAtMs: number | null;
  /** Why the last drain stopped early, for `status`; null when it did not. */
  readonly haltReason: string | null;
  /** Paths of the files that are this run's. */
  readonly outputPaths: readonly string[];
  /** Files as this run left them; only what is still so may be overwritten without `--force`. */
  readonly writtenFiles: readonly WrittenFile[];
  /** As `Store.folder`, which the paths in its settings start from. */
  readonly folder: string | null;
}

export interface RunObservation {
  readonly kind: 'learnt_limit' | 'outage' | 'prices' | 'groups' | 'submission';
  /** The lane that it is about; empty for the run as a whole. */
  readonly subject: string;
  /** Null: holds no more. */
  readonly value: JsonObject | null;
}

/** Tells a file from every other, and from itself after somebody changed it. */
export interface WrittenFile {
  /** Absolute. */
  readonly path: string;
  readonly inode: number;
  readonly size: number;
  readonly modifiedAtMs: number;
  /** In hexadecimal, of what is in it: a copy of the file is known by it. Absent where it was not written in one go. */
  readonly sha256?: string;
}

export interface NewRun {
  readonly name: string;
  readonly inputPath: string;
  readonly simulated: boolean;
  readonly settings: JsonObject;
  readonly createdAtMs: number;
}

export interface RunChange {
  readonly status?: RunStatus;
  readonly settings?: JsonObject;
  readonly stoppedAtMs?: number | null;
  readonly haltReason?: string | null;
  readonly outputPaths?: readonly string[];
  readonly writtenFiles?: readonly WrittenFile[];
}
