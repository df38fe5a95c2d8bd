/**
 * `--repair`: when an answer does not fit, the next try shows the model its answer and what was wrong with it. What
 * was wrong is kept in memory only: after a restart the next try is a plain one.
 */
import type { JsonObject } from '../../core/json.js';
import type { Mistake } from '../endpoint.js';

/** The longest part of a wrong answer that is sent, and paid for, again. */
const LONGEST_OUTPUT = 8_000;

/** @param bodyJson a chat completion request */
export function withMistake(bodyJson: string, { output, problem }: Mistake): string {
  const body = JSON.parse(bodyJson) as JsonObject;
  const messages = Array.isArray(body['messages']) ? body['messages'] : [];
  const shown = output.length > LONGEST_OUTPUT ? `${output.slice(0, LONGEST_OUTPUT)}…` : output;
  return JSON.stringify({
    ...body,
    messages: [
      ...messages,
      { role: 'assistant', content: shown },
      { role: 'user', content: `${problem}. Answer again, with JSON that fits and nothing else.` },
    ],
  });
}
