/** The results of a run as they are read for files, for people and over HTTP. */
import type { ResultFilter, ResultRow } from '../core/result-row.js';
import { resultPages } from '../results/result-pages.js';
import type { Store } from '../store/store.js';

const PAGE_ROWS = 1_000;

/** What the documents of a run came to, in input order, page by page and without the documents themselves. */
export function storedResults(
  store: Store,
  runId: number,
  only: ResultFilter,
  limit = PAGE_ROWS,
): AsyncIterable<readonly ResultRow[]> {
  const readPage = (afterLine: number) =>
    store.readResults({ runId, only, afterLine, limit, includeBody: false });
  return resultPages(readPage, only);
}
