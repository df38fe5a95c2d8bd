/**
 * The name of a task's request within a batch. It is made of the claim as well as of the task, so that a file that comes
 * late, or is somebody else's, names nothing that is ours now.
 */
import { createHash } from 'node:crypto';
import type { CallTask } from '../../core/call.js';

/** 96 bits, in hex; with the longest id it stays within the 64 characters that Together and Anthropic take. */
const CLAIM_CHARACTERS = 24;

export function customIdOf({ taskId, attemptToken }: CallTask): string {
  const claim = createHash('sha256').update(attemptToken).digest('hex').slice(0, CLAIM_CHARACTERS);
  return `task-${taskId}-${claim}`;
}

/** @returns null for a name that is none of ours */
export function taskIdOf(customId: string): number | null {
  const [, id] = /^task-(\d{1,15})-[0-9a-f]+$/.exec(customId) ?? [];
  return id === undefined ? null : Number(id);
}
