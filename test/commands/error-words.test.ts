/** The way out of an error, in the words of a terminal. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { WAYS_OUT, wayOutOf } from '../../src/commands/error-words.js';
import type { ErrorFacts } from '../../src/core/errors.js';

const SOURCE = join(import.meta.dirname, '..', '..', 'src');

describe('the way out', () => {
  it.each<[code: string, facts: ErrorFacts, words: RegExp]>([
    ['CHANGED_ANSWERED', {}, /--rerun-changed .*--keep .*--name/],
    ['INPUT_BAD_LINES', { badLines: 1, documents: 0 }, /^mend it; `llm-batch check`, .* says how$/],
    ['INPUT_BAD_LINES', { badLines: 2, documents: 5 }, /^mend them; .*--skip-bad-lines to set them aside/],
    ['INPUT_QUERY', { example: 'SELECT id FROM …' }, /--query 'SELECT id FROM …'$/],
    ['INPUT_QUERY', { example: "SELECT 'en'" }, /--query "SELECT 'en'"$/],
    ['INPUT_QUERY_MISSING', { query: `SELECT * FROM "it's"` }, /^Add --query 'SELECT \* FROM "it'\\''s"'$/],
    ['OUTPUT_EXISTS', {}, /with -o, .*--force/],
    ['OUTPUT_EXISTS', { callsMade: true, run: 'my run' }, /results 'my run' -o FILE.*--force/],
    ['OUTPUT_PATH', { callsMade: false }, /-o FILE; no call was made\.$/],
    ['OUTPUT_WRITE', { callsMade: true, run: 'r' }, /safe in the store: `llm-batch results r -o FILE`/],
    [
      'PRICE_UNKNOWN',
      { serviceTier: 'flex' },
      /--prices FILE, ask for another service_tier, .*--max-tokens-total/,
    ],
    ['RUN_CANCELLED', { run: 'a b', freeName: 'a-2' }, /results 'a b'; .*--name a-2$/],
    ['RUN_CANCELLED', { run: 'a', freeName: null }, /under another --name$/],
    ['RUN_OTHER_QUERY', { run: 'shop' }, /--name NEW.*--name shop /],
    ['STORE_CORRUPT', { path: 's.db' }, /sqlite3 s\.db \.recover/],
    ['STORE_MISSING', {}, /llm-batch run .*--db/],
    ['STORE_NEWER_SCHEMA', {}, /Upgrade/],
    ['STORE_URL_UNSUPPORTED', {}, /--db/],
  ])('of %s with %j has its command or flag', (code, facts, words) => {
    expect(wayOutOf({ code, facts, hint: undefined })).toMatch(words);
  });

  it('that the error itself knows stays as it is, or leads to where the answers are', () => {
    expect(wayOutOf({ code: 'X', facts: {}, hint: 'wait' })).toBe('wait');
    expect(wayOutOf({ code: 'STORE_LOCKED', facts: {}, hint: 'wait' })).toBe('wait');
    expect(wayOutOf({ code: 'OUTPUT_WRITE', facts: {}, hint: 'free some space' })).toMatch(
      /^free some space; the answers are safe in the store/,
    );
    expect(wayOutOf({ code: 'X', facts: {}, hint: undefined })).toBeUndefined();
  });

  it('is there for codes that exist, and for no others', () => {
    const thrown = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.endsWith('error-words.ts'))
      .map((name) => readFileSync(join(SOURCE, name), 'utf8'))
      .join('\n');
    const unused = Object.keys(WAYS_OUT).filter((code) => !thrown.includes(`'${code}'`));
    expect(unused).toEqual([]);
  });
});
