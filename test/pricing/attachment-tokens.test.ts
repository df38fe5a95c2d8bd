import { describe, expect, it } from 'vitest';
import { expectedAttachmentTokens, mostAttachmentTokens } from '../../src/pricing/attachment-tokens.js';
import { mostImageTokens } from '../../src/pricing/image-tokens.js';

const SQUARE = { kind: 'image', size: { width: 1_024, height: 1_024 } } as const;
const UNKNOWN = { kind: 'image', size: null } as const;

describe('the tokens of attachments', () => {
  it('are expected by the rule of the model, one by one', () => {
    expect(expectedAttachmentTokens('gpt-4o', [])).toBe(0);
    expect(expectedAttachmentTokens('gpt-4o', [SQUARE, SQUARE])).toBe(2 * 765);
    expect(expectedAttachmentTokens('gpt-4o', [UNKNOWN])).toBe(85 + 8 * 170);
    expect(expectedAttachmentTokens('gpt-4o', [{ kind: 'pdf', bytes: 1_000_000 }])).toBe(5_000);
  });

  it.each([
    'gpt-4o',
    'gpt-4o-mini',
    'gpt-4.1-mini',
    'gpt-5',
    'gpt-5.4',
    'gpt-5.6',
    'o3',
    'claude-x',
    'qwen-vl',
  ])('are at %s never more than the most, whatever the image', (model) => {
    for (const size of [null, { width: 1, height: 1 }, SQUARE.size, { width: 9_000, height: 9_000 }]) {
      const image = { kind: 'image', size } as const;
      expect(mostAttachmentTokens(model, [image])).toBeGreaterThanOrEqual(
        expectedAttachmentTokens(model, [image]),
      );
    }
  });

  it('are at most the largest that the rule gives, not a token for each byte of base64', () => {
    expect(mostImageTokens('gpt-4o', SQUARE.size)).toBe(85 + 8 * 170);
    expect(mostImageTokens('gpt-5.4', SQUARE.size)).toBe(10_000);
    expect(mostImageTokens('gpt-5.6', { width: 6_400, height: 6_400 })).toBe(40_000);
  });

  it('of vendors whose rule is unknown are at most what the dearest vendor takes', () => {
    expect(mostImageTokens('llava', SQUARE.size)).toBe(16_384);
    expect(mostImageTokens('openai/gpt-4o', SQUARE.size)).toBe(85 + 8 * 170);
  });

  it('of a PDF are at most a page of text and its picture for every thousand bytes', () => {
    expect(mostAttachmentTokens('gpt-4o', [{ kind: 'pdf', bytes: 500 }])).toBe(500 + 765);
    expect(mostAttachmentTokens('gpt-4o', [{ kind: 'pdf', bytes: 30_000 }])).toBe(30_000 + 30 * 765);
    expect(mostAttachmentTokens('gpt-4o', [{ kind: 'pdf', bytes: 50_000_000 }])).toBe(
      2_000_000 + 1_000 * 765,
    );
  });
});
