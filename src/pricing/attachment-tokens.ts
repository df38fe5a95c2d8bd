/** What the parts of a request that are no text take: what to expect, for rate limits, and what at most, for budgets. */
import type { ImageSize } from '../core/image-head.js';
import { imageTokens, mostImageTokens } from './image-tokens.js';

/** `size`: null where it is not known. `bytes`: of the file itself, not of its base64. */
export type CountedAttachment =
  | { readonly kind: 'image'; readonly size: ImageSize | null }
  | { readonly kind: 'pdf'; readonly bytes: number };

/**
 * How many pages a PDF has is not told by its head, so a letter or an invoice is assumed: three pages, each billed as
 * its text and a picture of it. What the server charges scales this, as it scales texts.
 */
const EXPECTED_PDF_TOKENS = 5_000;

/** What to reserve for a call before its answer says better. */
export function expectedAttachmentTokens(model: string, attachments: readonly CountedAttachment[]): number {
  let tokens = 0;
  for (const attachment of attachments) {
    tokens += attachment.kind === 'pdf' ? EXPECTED_PDF_TOKENS : imageTokens(model, attachment.size, 'auto');
  }
  return tokens;
}

/**
 * A page is billed as its text and a picture of it. The densest real pages (bare text, compressed, no font of their
 * own) take some 1,500 bytes for 1,000 tokens of text and a picture; a scan takes many times the bytes for the same.
 */
const LEAST_BYTES_PER_PAGE = 1_000;
/** No model is offered a longer context, and what does not fit is refused and not billed. */
const LONGEST_CONTEXT_TOKENS = 2_000_000;

/**
 * More than any real document is billed. A PDF that was made to have empty pages of a few bytes could pass it; nothing
 * short of reading it whole would tell.
 */
export function mostAttachmentTokens(model: string, attachments: readonly CountedAttachment[]): number {
  let tokens = 0;
  for (const attachment of attachments) {
    tokens +=
      attachment.kind === 'image'
        ? mostImageTokens(model, attachment.size)
        : mostPdfTokens(model, attachment);
  }
  return tokens;
}

function mostPdfTokens(model: string, { bytes }: { readonly bytes: number }): number {
  const pages = Math.ceil(bytes / LEAST_BYTES_PER_PAGE);
  const picture = imageTokens(model, PAGE, 'auto');
  // The text takes room in the context; some models bill a picture as many times the room that it takes.
  return Math.min(bytes, LONGEST_CONTEXT_TOKENS) + Math.min(pages, MOST_PAGES) * picture;
}

/** A page of A4 or letter size at the resolution to which it is brought. */
const PAGE: ImageSize = { width: 1_700, height: 2_200 };
/** Of one request, the largest number that a vendor takes (Gemini). */
const MOST_PAGES = 1_000;
