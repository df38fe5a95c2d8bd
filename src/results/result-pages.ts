/** Walks the settled tasks of a run page by page, so that memory does not grow with the run. */
import type { ResultFilter, ResultRow } from '../core/result-row.js';

/**
 * Reads the rows after a line, in input order, as many as the reader likes; empty when there are no more. It binds
 * the run, the filter and the page size to `Store.readResults`.
 */
export type ReadResultPage = (afterLine: number) => Promise<readonly ResultRow[]>;

/** Every row in input order, those outside `only` left out. */
export async function* resultPages(
  readPage: ReadResultPage,
  only: ResultFilter,
): AsyncGenerator<readonly ResultRow[]> {
  let afterLine = 0;
  for (;;) {
    const page = await readPage(afterLine);
    const last = page.at(-1);
    if (last === undefined) return;
    if (last.line <= afterLine)
      throw new Error(`result page after line ${afterLine} ended at line ${last.line}`);
    afterLine = last.line;
    yield only === 'all' ? page : page.filter((row) => row.state === only);
  }
}
