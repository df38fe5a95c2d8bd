/** The check of a run's answers, loaded where there is one: that takes a while, and most runs take any text. */
import type { CheckOutput } from '../engine/prepared-task.js';
import type { RunSettings } from './run-settings.js';

export async function loadOutputCheck({ answers }: RunSettings): Promise<CheckOutput | null> {
  if (answers.check === null) return null;
  const { createOutputCheck } = await import('./output-check.js');
  return createOutputCheck(answers.check);
}
