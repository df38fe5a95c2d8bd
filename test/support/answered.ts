/** An answer's part as a provider gives it, for providers that tests make up. */
import type { AnswerPart } from '../../src/provider/provider.js';

export function answered(text: string): AnswerPart {
  return { ok: true, outputJson: JSON.stringify(text), text, finishReason: 'stop' };
}
