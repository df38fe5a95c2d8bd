import { Chalk } from 'chalk';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EMPTY_SNAPSHOT, type ProgressSnapshot } from '../../src/core/progress-snapshot.js';
import { type Appearance, PLAIN_APPEARANCE } from '../../src/ui/colours.js';
import { renderFrame } from '../../src/ui/progress-frame.js';
import { renderPlainLine } from '../../src/ui/progress-plain.js';
import { displayWidth } from '../../src/ui/width.js';
import { snapshot } from './sample-run.js';

/** As on a terminal of so many columns, whose last one stays free. */
function frame(change: Partial<ProgressSnapshot>, terminalColumns: number, ended = false): string[] {
  const view = { columns: terminalColumns - 1, appearance: PLAIN_APPEARANCE, elapsedMs: 245_000, ended };
  return renderFrame({ ...snapshot, ...change }, view);
}

describe('the bar', () => {
  it('shows everything at 120 columns', () => {
    expect(frame({}, 120)).toEqual([
      '42.0% ━━━━━━━━━━━━━━━━━━━━━━━━━─────────────────────────────────── 126,000/300,000 · ETA 1 h 04 min',
      '      3 failed · 1,204 of 1,250 req/min · 412k tok/min · $12.41 · 16 of 16 calls open · held back by requests/min',
    ]);
  });

  it('says less at 80 columns', () => {
    expect(frame({}, 80)).toEqual([
      '42.0% ━━━━━━━━━━━━━━━━─────────────────────── 126,000/300,000 · ETA 1 h 04 min',
      '      3 failed · 1,204 req/min · 412k tok/min · $12.41 · limit: requests',
    ]);
  });

  it('keeps what matters most at 60 columns', () => {
    expect(frame({}, 60)).toEqual([
      '42.0% ━━━━━━━╸─────────── 126,000/300,000 · ETA 1 h 04 min',
      '3 failed · 1,204 req/min · $12.41 · limit: requests',
    ]);
  });

  it('grows no longer than is good for the eye at 200 columns', () => {
    const [bar = '', details = ''] = frame({ heldBackBy: 'pause', heldBackForMs: 12_000 }, 200);
    expect(displayWidth(bar)).toBe(99);
    expect(details).toContain('16 of 16 calls open · paused by the server, 12 s left');
  });

  it('is a percentage and a count where there is no room for more', () => {
    expect(frame({}, 25)).toEqual(['42.0% · 126,000/300,000', '3 failed']);
    expect(frame({}, 9)).toEqual(['42.0%', '3 failed']);
  });

  it('serves three documents as well as three hundred thousand', () => {
    const three = {
      total: 3,
      completed: 1,
      failed: 0,
      openCalls: 2,
      heldBackBy: null,
      costMicroUsd: 41,
      etaMs: 4_000,
    };
    expect(frame(three, 80)).toEqual([
      '  33% ━━━━━━━━━━━━━━━━━────────────────────────────────── 1/3 · ETA 4 s',
      '      1,204 of 1,250 req/min · 412k tok/min · $0.000041 · 2 of 16 calls open',
    ]);
  });

  it('keeps its length while the counts grow and the time becomes known', () => {
    const lengths = [0, 9, 12_345, 299_999].flatMap((completed) =>
      [null, 900, 59_000, 3_599_000, 86_000_000].map((etaMs) => {
        const [bar = ''] = frame({ completed, failed: 0, etaMs }, 80);
        return bar.replace(/[^━╸─]/g, '').length;
      }),
    );
    expect(new Set(lengths)).toEqual(new Set([39]));
  });

  it('shows the first document at once and is full only when all are done', () => {
    const cells = (completed: number): string =>
      frame({ completed, failed: 0 }, 80)[0]?.replace(/[^━╸─]/g, '') ?? '';
    expect(cells(0)).toMatch(/^─+$/);
    expect(cells(1)).toMatch(/^╸─+$/);
    expect(cells(299_999)).toMatch(/^━+╸$/);
    expect(cells(300_000)).toMatch(/^━+$/);
  });

  it('says since when a server has not answered and when it is asked next, in place of a speed', () => {
    const outageSinceMs = new Date(2026, 10, 29, 12, 3).getTime();
    const outage = { heldBackBy: 'outage', outageSinceMs, heldBackForMs: 20_000 } as const;
    const detailsAt = (columns: number): string | undefined => frame({ ...outage, etaMs: null }, columns)[1];
    expect(detailsAt(100)).toBe(
      '      3 failed · $12.41 · the server has not answered since 12:03, next try in 20 s',
    );
    expect(detailsAt(65)).toBe('3 failed · $12.41 · no answer since 12:03, next try in 20 s');
    expect(detailsAt(50)).toBe('3 failed · $12.41 · no answer since 12:03');
    expect(detailsAt(25)).toBe('3 failed · no answer');
  });

  it('says what Ctrl-C does', () => {
    expect(frame({ phase: 'stopping', openCalls: 12, graceLeftMs: 24_000 }, 100)[1]).toBe(
      '      stopping, waiting for up to 24 s for 12 calls to end · Ctrl-C again to cut them off',
    );
    expect(frame({ phase: 'stopping', openCalls: 1, graceLeftMs: null }, 50)[1]).toBe(
      'stopping, 1 call open · Ctrl-C cuts off',
    );
  });

  it('ends as one line with the time it took', () => {
    expect(frame({ completed: 299_997 }, 80, true)).toEqual([
      ' 100% ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 300,000/300,000 · in 4 min 05 s',
    ]);
    expect(frame({}, 80, true)[0]).toMatch(/126,000\/300,000 · after 4 min 05 s$/);
  });

  it('says why it goes one call at a time after crashes, and for how many documents yet, as the width allows', () => {
    const suspects = { suspectsLeft: 7, heldBackBy: 'concurrency' } as const;
    expect(frame(suspects, 250)[1]).toContain(
      'looking for the document that brought the program down: one call at a time, 7 left',
    );
    expect(frame(suspects, 80)[1]).toMatch(/one (?:call )?at a time(?: after crashes)?, 7 left/);
    expect(frame(suspects, 250)[1]).not.toContain('held back');
  });

  it('follows the bytes of the input while it is read', () => {
    const importing = { phase: 'importing', importedDocuments: 212_608, importedBytes: 1.3e9 } as const;
    expect(frame({ ...importing, importTotalBytes: 1.9e9 }, 80)).toEqual([
      '68.4% ━━━━━━━━━━━━━━━━━━━───────── reading 212,608 documents · 1.3 GB of 1.9 GB',
    ]);
    expect(frame({ ...importing, importTotalBytes: null }, 80)).toEqual([
      'reading 212,608 documents · 1.3 GB',
    ]);
  });

  it('marks the failed part in red', () => {
    const coloured: Appearance = { ...PLAIN_APPEARANCE, colours: new Chalk({ level: 1 }) };
    const view = { columns: 79, appearance: coloured, elapsedMs: 0, ended: false };
    const [bar] = renderFrame({ ...snapshot, completed: 100_000, failed: 50_000 }, view);
    expect(bar).toContain('\x1b[36m━━━━━━━━━━━━━\x1b[39m\x1b[31m━━━━━━╸\x1b[39m');
  });

  it('draws in ASCII where the terminal speaks nothing else', () => {
    const ascii: Appearance = { ...PLAIN_APPEARANCE, unicode: false };
    const lines = renderFrame(snapshot, { columns: 79, appearance: ascii, elapsedMs: 0, ended: false });
    expect(lines[0]).toBe('42.0% ################----------------------- 126,000/300,000 | ETA 1 h 04 min');
    expect(lines.join('')).toMatch(/^[\x20-\x7e]*$/);
  });

  it('never has a line wider than the terminal, whatever the numbers', () => {
    const count = fc.oneof(fc.nat({ max: 50 }), fc.nat({ max: 2e9 }));
    const maybe = (value: fc.Arbitrary<number>): fc.Arbitrary<number | null> => fc.option(value);
    const anySnapshot: fc.Arbitrary<ProgressSnapshot> = fc.record({
      phase: fc.constantFrom('importing', 'running', 'stopping'),
      importedDocuments: count,
      importedBytes: fc.nat({ max: 2e12 }),
      importTotalBytes: maybe(fc.nat({ max: 2e12 })),
      total: count,
      completed: count,
      failed: count,
      openCalls: count,
      openResponses: count,
      documentsPerCall: fc.option(fc.integer({ min: 1, max: 2_048 })),
      documentsPerSecond: maybe(fc.nat({ max: 1e6 })),
      latencyMs: fc.constantFrom(null, { p50: 40, p95: 1_200, p99: 90_000 }),
      concurrency: count,
      requestsPerMinute: fc.double({ min: 0, max: 1e7 }),
      requestsPerMinuteLimit: maybe(count),
      tokensPerMinute: fc.double({ min: 0, max: 1e10 }),
      tokensPerMinuteLimit: maybe(count),
      costMicroUsd: maybe(fc.nat({ max: 2e12 })),
      etaMs: maybe(fc.nat({ max: 2e10 })),
      remote: fc.option(
        fc.record({ batches: count, requests: count, done: count, finalizing: count, settling: count }),
      ),
      heldBackBy: fc.constantFrom(
        null,
        'requests',
        'tokens',
        'requests_per_day',
        'concurrency',
        'pause',
        'outage',
        'trial',
        'retry_wait',
      ),
      heldBackForMs: maybe(fc.nat({ max: 2e9 })),
      outageSinceMs: maybe(fc.nat({ max: 2e12 })),
      suspectsLeft: fc.constantFrom(0, 0, 1, 1_234_567),
      graceLeftMs: maybe(fc.nat({ max: 2e6 })),
    });
    fc.assert(
      fc.property(anySnapshot, fc.integer({ min: 1, max: 250 }), fc.boolean(), (any, columns, ended) => {
        const view = { columns, appearance: PLAIN_APPEARANCE, elapsedMs: 1e7, ended };
        for (const line of renderFrame(any, view)) expect(displayWidth(line)).toBeLessThanOrEqual(columns);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('the plain line', () => {
  const { colours } = PLAIN_APPEARANCE;

  it('says everything', () => {
    expect(renderPlainLine(snapshot, colours)).toBe(
      '126,000/300,000 done (42.0%) · ETA 1 h 04 min · 3 failed · 1,204 of 1,250 req/min · 412k tok/min · $12.41 · ' +
        '16 of 16 calls open · held back by requests/min',
    );
    const latencyMs = { p50: 40, p95: 61, p99: 1_204 };
    expect(renderPlainLine({ ...snapshot, documentsPerSecond: 412, latencyMs }, colours)).toMatch(
      / · held back by requests\/min · 412 documents\/s · p50 40 ms, p95 61 ms, p99 1\.2 s a call$/,
    );
  });

  it('follows the phases of a run', () => {
    const importing = {
      ...EMPTY_SNAPSHOT,
      phase: 'importing',
      importedDocuments: 1,
      importedBytes: 900,
    } as const;
    expect(renderPlainLine(importing, colours)).toBe('reading 1 document · 900 B');
    expect(renderPlainLine({ ...importing, importTotalBytes: 1_800 }, colours)).toBe(
      'reading 1 document · 900 B of 1.8 kB',
    );
    expect(renderPlainLine({ ...snapshot, phase: 'stopping', graceLeftMs: 30_000 }, colours)).toBe(
      '126,000/300,000 done (42.0%) · stopping, waiting for up to 30 s for 16 calls to end',
    );
  });
});
