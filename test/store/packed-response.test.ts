import fc from 'fast-check';
import { expect, it } from 'vitest';
import { packResponse, unpackResponse } from '../../src/store/packed-response.js';

const MODEL = 'gpt-4o-mini-2024-07-18';

/** Of OpenAI's shape, as short answers come by the million. */
function bodyOf(content: string): string {
  return JSON.stringify({
    id: 'chatcmpl-CqZr5mWq0nJ8sYb2TtUvXkLdEaFgH',
    object: 'chat.completion',
    created: 1_795_992_837,
    model: MODEL,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content, refusal: null, annotations: [] },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: {
      prompt_tokens: 31,
      completion_tokens: 2,
      total_tokens: 33,
      prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
      completion_tokens_details: {
        reasoning_tokens: 0,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    },
    service_tier: 'default',
    system_fingerprint: 'fp_bca9ef1122',
  });
}

it('a body comes back character for character, whatever stands beside it', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 3_000 });
  fc.assert(
    fc.property(text, text, text, fc.option(text), (responseJson, model, outputJson, detailsJson) => {
      const beside = { model, outputJson, detailsJson };
      expect(unpackResponse(packResponse(responseJson, beside), beside)).toBe(responseJson);
    }),
  );
});

it("a body of a megabyte comes back, longer than zlib's window", () => {
  const content = Array.from({ length: 100_000 }, (_, index) => `word ${index * 7919}`).join(' ');
  const beside = { model: MODEL, outputJson: JSON.stringify(content), detailsJson: null };
  const body = bodyOf(content);
  expect(unpackResponse(packResponse(body, beside), beside)).toBe(body);
});

it('a body that was packed by an earlier build is read: the words in common are never edited', () => {
  const beside = { model: MODEL, outputJson: JSON.stringify('positive'), detailsJson: null };
  const packed = Buffer.from(
    'Q08FzoVRRaa54YUGeV4WxZFJRiEloWUR2T4prolu6R7EJhFzS1NLSyMLY3PUtIKlxKA09cBLJHqkImNDrOnICD0hGRuPwKSUlJxomZpmaGhkpFQLAA==',
    'base64',
  );
  expect(unpackResponse(packed, beside)).toBe(bodyOf('positive'));
});

it('a short answer takes less room for its body than for its row, a long one hardly more', () => {
  const long = Array.from({ length: 2_000 }, (_, index) => `${(index * 7919) % 9973}`).join(' ');
  for (const content of ['positive', long]) {
    const beside = { model: MODEL, outputJson: JSON.stringify(content), detailsJson: null };
    expect(packResponse(bodyOf(content), beside).length).toBeLessThan(200);
  }
});
