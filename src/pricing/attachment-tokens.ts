/** Tokens of the parts of a request that are not text: what to expect, for rate limits, and the most, for budgets. */
import type { ImageSize } from '../core/image-head.js';
import { imageTokens, mostImageTokens } from './image-tokens.js';

/** `size`: null if unknown. `bytes`: of the file itself, not of its base64. */
export type CountedAttachment =
  | { readonly kind: 'image'; readonly size: ImageSize | null }
  | { readonly kind: 'pdf'; readonly bytes: number };

/**
 * The head of a PDF does not say how many pages it has, so a letter or an invoice is assumed: three pages, each billed as
 * its text and a picture of it. As with texts, this is scaled by what the server charges.
 */
const EXPECTED_PDF_TOKENS = 5_000;

/** What to reserve for a call until its answer says what it took. */
export function expectedAttachmentTokens(model: string, attachments: readonly CountedAttachment[]): number {
  const expected = (attachment: CountedAttachment): number =>
    attachment.kind === 'pdf' ? EXPECTED_PDF_TOKENS : imageTokens(model, attachment.size, 'auto');
  return attachments.reduce((sum, attachment) => sum + expected(attachment), 0);
}

/**
 * A page is billed as its text and a picture of it. The densest real pages (bare text, compressed, without a font of their
 * own) have some 1,500 bytes for 1,000 tokens of text and a picture; a scan has many times as many bytes.
 */
const LEAST_BYTES_PER_PAGE = 1_000;
/** No model has a longer context, and what does not fit is refused rather than billed. */
const LONGEST_CONTEXT_TOKENS = 2_000_000;

/**
 * More than any real document is billed. A PDF made of empty pages of a few bytes could exceed it; only reading it whole
 * would show that.
 */
export function mostAttachmentTokens(model: string, attachments: readonly CountedAttachment[]): number {
  const most = (attachment: CountedAttachment): number =>
    attachment.kind === 'pdf'
      ? mostPdfTokens(model, attachment.bytes)
      : mostImageTokens(model, attachment.size);
  return attachments.reduce((sum, attachment) => sum + most(attachment), 0);
}

function mostPdfTokens(model: string, bytes: number): number {
  const pages = Math.ceil(bytes / LEAST_BYTES_PER_PAGE);
  const picture = imageTokens(model, PAGE, 'auto');
  // Text is billed as the room that it takes in the context; some models bill a picture as many times its room.
  return Math.min(bytes, LONGEST_CONTEXT_TOKENS) + Math.min(pages, MOST_PAGES) * picture;
}

/** A page of A4 or letter size at the resolution to which it is brought. */
const PAGE: ImageSize = { width: 1_700, height: 2_200 };
/** The largest number that any vendor takes in one request (Gemini). */
const MOST_PAGES = 1_000;
