/** What of a store is still to be done, for whoever watches it as a whole. */

/** Open tasks of one priority. */
export interface BacklogPart {
  readonly state: 'ready' | 'delayed' | 'in_progress';
  readonly priority: number;
  readonly tasks: number;
}

export interface Backlog {
  readonly parts: readonly BacklogPart[];
  /** Since the open task that was handed in first was: where that is not known of it alone, its run was made. Null: none is open. */
  readonly oldestMs: number | null;
}
