/**
 * Takes secrets out of text by their value. Servers echo what they were sent: a 401 often quotes the key,
 * whole, cut short or masked (`sk-ab***yz`), and a gateway may show it encoded. Every text that came from
 * outside passes through here before it is stored, logged or shown.
 */

/** Returns `text` with every trace of the known secrets replaced by `[redacted]`. */
export type Redactor = (text: string) => string;

const REPLACEMENT = '[redacted]';

/** A run of this many characters of a secret, anywhere in it, counts as a trace of it. */
const TRACE_LENGTH = 8;

/** Shorter secrets (`test`, `none`) are words; replacing them would mangle ordinary text. */
const SHORTEST_SECRET = 4;

/** How much of a secret must stand on one side of a mask before the token counts as its masked form. */
const SHORTEST_MASKED_PART = 3;

/** How far around a mask to look for a part of a secret. */
const LONGEST_MASKED_PART = 64;

/** What services put in the middle of a key they show. */
const MASK = /\*{2,}|•{2,}|…+|\.{3,}|x{4,}|X{4,}|#{3,}/g;

/** Keys that are not ours to know, e.g. a gateway's own key for the server behind it. */
const FOREIGN_KEY =
  /\b(?:sk|pk|rk|gsk|xai|hf|pplx|nvapi)[-_][\w-]{16,}|\bAIza[\w-]{20,}|\bBearer\s+[\w.~+/=-]{8,}/g;

/**
 * Builds a redactor for these secrets and for their base64, URL-encoded, hexadecimal and masked forms.
 * Also hides what looks like anybody's API key.
 */
export function createRedactor(secrets: readonly string[]): Redactor {
  const known = [...new Set(secrets)].filter((secret) => secret.length >= SHORTEST_SECRET);
  const traces = new Set<string>();
  for (const secret of known) {
    for (const form of formsOf(secret)) {
      for (let start = 0; start + TRACE_LENGTH <= form.length; start += 1) {
        traces.add(form.slice(start, start + TRACE_LENGTH));
      }
    }
  }
  const short = known.filter((secret) => secret.length < TRACE_LENGTH);

  return (text) => {
    let clean = replaceTraces(text, traces);
    for (const secret of short) clean = replaceWholeWord(clean, secret);
    for (const secret of known) clean = replaceMaskedForms(clean, secret);
    return clean.replace(FOREIGN_KEY, REPLACEMENT);
  };
}

function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret, 'utf8');
  const forms = [secret, encodeURIComponent(secret), bytes.toString('hex')];
  // In base64 the same bytes look different at each of three alignments (`user:secret`, `Bearer secret`);
  // the characters at either edge mix with what stands beside them and are left out.
  for (let offset = 0; offset < 3; offset += 1) {
    const shifted = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    const inner = shifted.slice(
      offset === 0 ? 0 : offset + 1,
      (offset + bytes.length) % 3 === 0 ? undefined : -1,
    );
    forms.push(inner, inner.replaceAll('+', '-').replaceAll('/', '_'));
  }
  return forms;
}

function replaceTraces(text: string, traces: ReadonlySet<string>): string {
  let clean = '';
  let kept = 0;
  let position = 0;
  while (position + TRACE_LENGTH <= text.length) {
    if (!traces.has(text.slice(position, position + TRACE_LENGTH))) {
      position += 1;
      continue;
    }
    clean += text.slice(kept, position) + REPLACEMENT;
    position += TRACE_LENGTH;
    while (position < text.length && traces.has(text.slice(position - TRACE_LENGTH + 1, position + 1))) {
      position += 1;
    }
    kept = position;
  }
  return kept === 0 ? text : clean + text.slice(kept);
}

function replaceWholeWord(text: string, secret: string): string {
  const escaped = secret.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return text.replace(new RegExp(`(?<![\\w-])${escaped}(?![\\w-])`, 'g'), REPLACEMENT);
}

function replaceMaskedForms(text: string, secret: string): string {
  let clean = '';
  let kept = 0;
  for (const mask of text.matchAll(MASK)) {
    const maskEnd = mask.index + mask[0].length;
    const before = text.slice(Math.max(kept, mask.index - LONGEST_MASKED_PART), mask.index);
    const after = text.slice(maskEnd, maskEnd + LONGEST_MASKED_PART);
    let head = before.length;
    while (head > 0 && !secret.startsWith(before.slice(-head))) head -= 1;
    let tail = after.length;
    while (tail > 0 && !secret.endsWith(after.slice(0, tail))) tail -= 1;
    if (head < SHORTEST_MASKED_PART && tail < SHORTEST_MASKED_PART) continue;
    clean += text.slice(kept, mask.index - head) + REPLACEMENT;
    kept = maskEnd + tail;
  }
  return kept === 0 ? text : clean + text.slice(kept);
}
