/** What the service says of itself: made of the schemas that it checks with. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');

it('docs/openapi.json is what the service answers; `npm run docs:openapi` writes it', () => {
  const said = execFileSync(process.execPath, [join(ROOT, 'scripts', 'write-openapi.mjs'), '-'], {
    encoding: 'utf8',
  });
  expect(readFileSync(join(ROOT, 'docs', 'openapi.json'), 'utf8')).toBe(said);
  const { openapi, paths } = JSON.parse(said);
  expect(openapi).toMatch(/^3\.1\./);
  expect(Object.keys(paths).sort()).toEqual([
    ...['/healthz', '/openapi.json', '/readyz', '/v1/runs', '/v1/runs/{id}', '/v1/runs/{id}/results'],
    ...['/v1/tasks', '/v1/tasks/{id}', '/v1/tasks/{id}/retry'],
  ]);
});
