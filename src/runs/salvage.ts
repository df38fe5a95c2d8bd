/**
 * The salvage file: outcomes that were paid for and could not be stored, because the disk was full or broken.
 * They carry the token of their claim, so they can be recorded later as if nothing had happened, as long as
 * nobody else has taken the task meanwhile.
 */
import { appendFile, readFile, rename } from 'node:fs/promises';
import { EXIT_CODES, LlmBatchError } from '../core/errors.js';
import type { Store, TaskOutcome } from '../store/store.js';

/** @throws LlmBatchError SALVAGE_FAILED (exit 5) when not even this file can be written */
export async function saveSalvage(path: string, outcomes: readonly TaskOutcome[]): Promise<void> {
  const lines = outcomes.map((outcome) => `${JSON.stringify(outcome)}\n`).join('');
  try {
    await appendFile(path, lines, { mode: 0o600, flush: true } as object);
  } catch (cause) {
    throw new LlmBatchError(`${outcomes.length} answers could not be stored, nor saved to ${path}.`, {
      code: 'SALVAGE_FAILED',
      exitCode: EXIT_CODES.store,
      hint: 'free disk space; those documents will be sent again by `llm-batch resume`',
      cause,
    });
  }
}

/** Records what an earlier process had to leave in the file, before its tasks are put back. */
export async function applySalvage(store: Store, path: string): Promise<number> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
  const outcomes: TaskOutcome[] = [];
  for (const line of text.split('\n')) {
    // The disk may have filled up in the middle of the last line.
    try {
      if (line !== '') outcomes.push(JSON.parse(line) as TaskOutcome);
    } catch {}
  }
  const { lostTaskIds } = await store.record([], outcomes);
  await rename(path, `${path}.applied`);
  return outcomes.length - lostTaskIds.length;
}
