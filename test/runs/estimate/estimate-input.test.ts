import { Readable } from 'node:stream';
import { beforeAll, expect, it } from 'vitest';
import { runSettingsFrom } from '../../../src/commands/asked-settings.js';
import { resolveSettings } from '../../../src/config/load.js';
import { type DocumentPage, readDocuments } from '../../../src/documents/read.js';
import { openInput } from '../../../src/input/input.js';
import { openPriceBook } from '../../../src/pricing/open-price-book.js';
import type { PriceBook } from '../../../src/pricing/price-book.js';
import { type EstimateReport, estimateInput } from '../../../src/runs/estimate/estimate-input.js';
import type { RunSettings } from '../../../src/runs/run-settings.js';

let prices: PriceBook;
let settings: RunSettings;

beforeAll(async () => {
  prices = await openPriceBook(null);
  settings = await runSettingsFrom(
    resolveSettings({ flags: {}, environment: {}, file: {} }),
    { inputs: [] },
    '/',
  );
});

async function* pagesOf(texts: readonly string[]): AsyncGenerator<DocumentPage> {
  const lines = texts.map((text, id) => `${JSON.stringify({ id, text })}\n`);
  const input = await openInput('-', { cwd: '/', stdin: Readable.from([Buffer.from(lines.join(''))]) });
  yield* readDocuments(input, { settings: settings.request });
}

function estimate(texts: readonly string[], sampled: number): Promise<EstimateReport> {
  return estimateInput({
    pages: pagesOf(texts),
    settings,
    models: [],
    exact: false,
    outputTokens: null,
    latencyMs: null,
    dailyDocuments: null,
    prices,
    nowMs: Date.UTC(2026, 10, 1),
    signal: new AbortController().signal,
    sampleBounds: { documents: sampled, bytes: 1_000_000 },
  });
}

it('knows the longest document though it is not in the sample, and reckons with its length', async () => {
  const texts = Array.from({ length: 1_000 }, (_, index) =>
    'river '.repeat(index === 700 ? 5_000 : 5 + (index % 9)),
  );
  const { models, sampled } = await estimate(texts, 50);
  expect(sampled).toBe(50);
  const exact = await estimate(texts, 1_000);
  expect(exact.sampled).toBeNull();
  expect(models[0]?.input.document.max).toBe(exact.models[0]?.input.document.max);
  // A third of all tokens is in that one document.
  const [guess, truth] = [models[0]?.input.total ?? 0, exact.models[0]?.input.total ?? 0];
  expect(Math.abs(guess / truth - 1)).toBeLessThan(0.02);
});
