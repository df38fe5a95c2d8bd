/** Result rows as a store would hand them out. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from 'vitest';
import type { CompletedResult, TaskError } from '../../src/core/outcome.js';
import type { ResultRow } from '../../src/core/result-row.js';
import type { ReadResultPage } from '../../src/results/result-pages.js';

const AT_MS = Date.UTC(2026, 2, 14, 9, 26, 53, 589);

export function completedRow(line: number, change: Partial<ResultRow & CompletedResult> = {}): ResultRow {
  const {
    outputJson = '"positive"',
    model = 'gpt-4o-mini-2024-07-18',
    finishReason = 'stop',
    detailsJson,
    responseJson,
    ...row
  } = change;
  return {
    taskId: 100 + line,
    line,
    key: `doc-${line}`,
    state: 'completed',
    attempts: 1,
    settledAtMs: AT_MS,
    result: { outputJson, model, finishReason, detailsJson, responseJson },
    error: null,
    usage: { inputTokens: 31, outputTokens: 2, cachedTokens: 0, reasoningTokens: 0 },
    costMicroUsd: 6,
    latencyMs: 812.4,
    requestId: `req_${line}`,
    sharedFrom: null,
    metadataJson: null,
    body: null,
    ...row,
  };
}

export function failedRow(
  line: number,
  change: Partial<TaskError> = {},
  row: Partial<ResultRow> = {},
): ResultRow {
  return {
    ...completedRow(line),
    state: 'failed',
    attempts: 2,
    result: null,
    error: {
      kind: 'invalid_request',
      message: 'Invalid value',
      httpStatus: 400,
      code: 'invalid_value',
      requestId: `req_${line}`,
      partialOutputJson: null,
      ...change,
    },
    ...row,
  };
}

/** Hands the rows out in pages; remembers after which lines it was asked. */
export function pagesOf(
  rows: readonly ResultRow[],
  pageSize = 3,
): ReadResultPage & { readonly asked: number[] } {
  const asked: number[] = [];
  const read = async (afterLine: number): Promise<readonly ResultRow[]> => {
    asked.push(afterLine);
    return rows.filter(({ line }) => line > afterLine).slice(0, pageSize);
  };
  return Object.assign(read, { asked });
}

const folders: string[] = [];

/** A folder of this test's own, removed after it. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'llm-batch-results-'));
  folders.push(folder);
  return folder;
}

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});
