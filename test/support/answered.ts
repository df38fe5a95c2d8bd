/** Answers as a provider gives them, for providers that tests make up. */
import type { AnswerPart, ProviderAnswer } from '../../src/provider/provider.js';

export function answered(text: string): AnswerPart {
  return { ok: true, outputJson: JSON.stringify(text), text, finishReason: 'stop' };
}

/** An answer of one part for each document; what a test does not name says nothing. */
export function answerOf(parts: readonly AnswerPart[], change: Partial<ProviderAnswer> = {}): ProviderAnswer {
  return {
    ok: true,
    parts,
    model: 'm',
    usage: null,
    costMicroUsd: null,
    httpStatus: 200,
    requestId: null,
    hints: {},
    ...change,
  };
}
