/** Runs before every test file: no test sees the developer's home, keys or settings, and cases come from the seed told. */
import fs, { mkdtempSync, rmSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';

for (const name of Object.keys(process.env)) {
  if (name.startsWith('OPENAI_') || name.startsWith('LLM_BATCH_')) delete process.env[name];
}
const home = mkdtempSync(join(tmpdir(), 'llm-batch-home-'));
process.env['HOME'] = home;
process.on('exit', () => rmSync(home, { recursive: true, force: true }));
process.env['NO_COLOR'] = '1';
fc.configureGlobal({ seed: Number(process.env['TEST_SEED']) });

// A store within a test need not outlive a power cut; those that are to, are a program's of its own (test/faults).
fs.fsync = ((_descriptor, callback) => process.nextTick(callback, null)) as typeof fs.fsync;
syncBuiltinESMExports();
