/** How an edited input compares with the run it belongs to. */
import { formatCount } from './numbers.js';

export interface ImportPlanCounts {
  readonly unchanged: number;
  readonly answeredBefore: number;
  readonly changed: number;
  readonly added: number;
  readonly gone: number;
}

/** `9,950 unchanged · 120 answered before · 40 changed · 10 new · 3 gone`; what is zero is left out. */
export function formatImportPlan(plan: ImportPlanCounts): string {
  const parts = [
    { count: plan.unchanged, word: 'unchanged' },
    { count: plan.answeredBefore, word: 'answered before' },
    { count: plan.changed, word: 'changed' },
    { count: plan.added, word: 'new' },
    { count: plan.gone, word: 'gone' },
  ]
    .filter(({ count }) => count > 0)
    .map(({ count, word }) => `${formatCount(count)} ${word}`);
  return parts.length === 0 ? 'no documents' : parts.join(' · ');
}
