/**
 * `--repair`: when an answer does not fit, the next try shows the model its answer and what was wrong with it. What
 * was wrong is kept in memory only: after a restart the next try is a plain one.
 */
import type { Json, JsonObject } from '../core/json.js';
import type { Mistake } from './endpoint.js';

/** The longest part of a wrong answer that is sent, and paid for, again. */
const LONGEST_OUTPUT = 8_000;

/** Puts a correction behind the messages that a body has in this field, or behind the text that stands for one. */
export function correctIn(contentField: string): (bodyJson: string, mistake: Mistake) => string {
  return (bodyJson, { output, problem }) => {
    const body = JSON.parse(bodyJson) as JsonObject;
    const shown = output.length > LONGEST_OUTPUT ? `${output.slice(0, LONGEST_OUTPUT)}…` : output;
    return JSON.stringify({
      ...body,
      [contentField]: [
        ...messagesOf(body[contentField]),
        { role: 'assistant', content: shown },
        { role: 'user', content: `${problem}. Answer again, with JSON that fits and nothing else.` },
      ],
    });
  };
}

function messagesOf(content: Json | undefined): readonly Json[] {
  if (Array.isArray(content)) return content;
  return content === undefined ? [] : [{ role: 'user', content }];
}
