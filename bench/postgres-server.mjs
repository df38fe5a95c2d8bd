// A PostgreSQL of the benches' own, each commit on its disk, or the one that LLM_BATCH_TEST_POSTGRES_URL names.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { transformWithOxc } from 'vite';

/** What docs/deploy.md advises for a machine of 8 GB. */
const MEMORY = ['shared_buffers=1GB', 'max_wal_size=4GB'];

/** That of the tests. @returns its URL, and what ends it */
export async function startServer() {
  const given = process.env.LLM_BATCH_TEST_POSTGRES_URL;
  if (given !== undefined) return { url: given, remove: async () => undefined };
  const source = fileURLToPath(new URL('../test/support/postgres-server.ts', import.meta.url));
  const compiled = source.replace('.ts', `-${process.pid}.mjs`);
  writeFileSync(compiled, (await transformWithOxc(readFileSync(source, 'utf8'), source)).code);
  try {
    const { startPostgres } = await import(compiled);
    return await startPostgres({ durable: true, memory: MEMORY });
  } finally {
    rmSync(compiled);
  }
}
