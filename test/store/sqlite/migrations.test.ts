import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { describeSchema, MIGRATIONS, migrate } from '../../../src/store/sqlite/migrations.js';

describe('the schema', () => {
  it('is what schema.sql says; `npm run schema:dump` writes it anew', () => {
    const database = new Database(':memory:');
    migrate(database);
    const file = join(import.meta.dirname, '..', '..', '..', 'src', 'store', 'sqlite', 'schema.sql');
    expect(describeSchema(database)).toBe(readFileSync(file, 'utf8'));
    database.close();
  });

  it('is brought up to date by going over each table once, however many runs there are', () => {
    const database = new Database(':memory:');
    migrate(database);
    const plans = MIGRATIONS.flatMap(({ sql }) => sql.match(/^UPDATE [^;]+;/gm) ?? []).map((update) =>
      database
        .prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${update}`)
        .all()
        .map(({ detail }) => detail),
    );
    expect(plans.flat().join('\n')).not.toBe('');
    expect(plans.flat().join('\n')).not.toContain('CORRELATED');
    database.close();
  });

  it('keeps of an earlier answer all that a result has, but for what only an error has', () => {
    const database = new Database(':memory:');
    migrate(database);
    const columnsOf = (table: string): string[] =>
      database.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck().all(table);
    const ofErrors = ['error_kind', 'error_message', 'error_code', 'http_status', 'partial_output_json'];
    const missing = columnsOf('results').filter((name) => !columnsOf('earlier_answers').includes(name));
    expect(missing).toEqual(ofErrors);
    database.close();
  });

  it('comes from migrations that are numbered without a gap', () => {
    expect(MIGRATIONS.map((migration) => migration.version)).toEqual(MIGRATIONS.map((_, index) => index + 1));
  });
});
