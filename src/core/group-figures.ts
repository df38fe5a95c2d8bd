/** What the calls of a run that had several documents were like. */
export interface GroupFigures {
  readonly calls: number;
  readonly documents: number;
  /** Of one call. */
  readonly fewest: number;
  readonly most: number;
  /** Calls whose documents went again in smaller ones. */
  readonly splits: number;
}

export const NO_GROUPS: GroupFigures = { calls: 0, documents: 0, fewest: 0, most: 0, splits: 0 };

export function addGroups(one: GroupFigures, other: GroupFigures): GroupFigures {
  if (one.calls === 0 || other.calls === 0) {
    const only = one.calls === 0 ? other : one;
    return { ...only, splits: one.splits + other.splits };
  }
  return {
    calls: one.calls + other.calls,
    documents: one.documents + other.documents,
    fewest: Math.min(one.fewest, other.fewest),
    most: Math.max(one.most, other.most),
    splits: one.splits + other.splits,
  };
}
