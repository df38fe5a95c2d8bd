/** What the files to deploy with take for granted. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

function textOf(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

it('the image has every file that its build names', () => {
  const copied = [...textOf('Dockerfile').matchAll(/^COPY (?!--)(.+) \S+$/gm)].flatMap(([, sources = '']) =>
    sources.split(' '),
  );
  const { scripts } = JSON.parse(textOf('package.json')) as { scripts: { build: string } };
  const named = scripts.build.split(' ').filter((word) => /\.(json|mjs)$/.test(word));
  expect(named.length).toBeGreaterThan(1);
  const missing = named.filter((file) => !copied.some((source) => `${file}/`.startsWith(`${source}/`)));
  expect(missing).toEqual([]);
});

// A dynamic user has no home of its own, and everything but its state folder is read-only.
it.each(['serve', 'worker'])(
  'the unit of `%s` keeps what belongs to a store on a server where it may write',
  (name) => {
    const unit = textOf(`deploy/llm-batch-${name}.service`);
    expect(unit).toContain('DynamicUser=yes');
    const [, folder] = /^StateDirectory=(.+)$/m.exec(unit) ?? [];
    expect(unit).toMatch(new RegExp(`^Environment=XDG_STATE_HOME=%S/${folder}$`, 'm'));
  },
);
