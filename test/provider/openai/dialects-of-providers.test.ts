/** docs/providers.md: what each provider answers is read as it is meant, and each line of the document can be typed. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { answerJson, openProvider, send, startServer } from './loopback.js';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const FIXTURES = join(ROOT, 'fixtures', 'providers');

interface Recorded {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
  /** Of the reply that is made of it. */
  readonly expect: object;
}

const recorded = readdirSync(FIXTURES, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.json'))
  .sort();

describe('what a provider answers', () => {
  it.each(recorded)('%s', async (name) => {
    const found = JSON.parse(readFileSync(join(FIXTURES, name), 'utf8')) as Recorded;
    const server = await startServer((_, response) =>
      answerJson(response, JSON.stringify(found.body), found.status, found.headers),
    );
    expect(await send(openProvider(server.baseUrl))).toMatchObject(found.expect);
  });
});

describe('docs/providers.md', () => {
  const text = readFileSync(join(ROOT, 'docs', 'providers.md'), 'utf8');
  const reference = readFileSync(join(ROOT, 'docs', 'cli.md'), 'utf8');
  const lines = text.split('\n').filter((line) => line.startsWith('    llm-batch '));

  it('has a section for each provider that there are fixtures of, with a line that works', () => {
    const sections = [...text.matchAll(/^## .*\((\S+)\)$/gm)].map(([, folder]) => folder ?? '');
    expect(sections.sort()).toEqual(readdirSync(FIXTURES).sort());
    expect(lines.length).toBeGreaterThanOrEqual(sections.length);
  });

  it.each(lines)('%s', (line) => {
    const flags = line.match(/(?<= )--[a-z-]+/g) ?? [];
    expect(flags.length).toBeGreaterThan(0);
    expect(flags.filter((flag) => !reference.includes(flag))).toEqual([]);
  });
});
