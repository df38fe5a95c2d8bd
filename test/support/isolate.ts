/** Runs before every test file: no test sees the developer's home, keys or settings. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

for (const name of Object.keys(process.env)) {
  if (name.startsWith('OPENAI_') || name.startsWith('LLM_BATCH_')) delete process.env[name];
}
const home = mkdtempSync(join(tmpdir(), 'llm-batch-home-'));
process.env['HOME'] = home;
process.on('exit', () => rmSync(home, { recursive: true, force: true }));
process.env['NO_COLOR'] = '1';
