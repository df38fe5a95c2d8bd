/**
 * Sorts bad lines by what has to be done about them. The reader says what is wrong in a sentence for people; the
 * kinds are for counting and for scripts. A fixture holds a line for every sentence, so that none goes astray.
 */
import type { BadLine } from '../../input/bad-line.js';

export const BAD_LINE_KINDS = [
  'not_utf8',
  'line_too_long',
  'not_json',
  'not_an_object',
  'lone_surrogate',
  'number_too_large',
  'missing_field',
  'empty_message',
  /** The field of `{{image field}}`, or the file that it names. */
  'unusable_image',
  'unusable_id',
  'unusable_request',
  /** What a format of its own (a table with a cell too many) finds wrong. */
  'unreadable_line',
] as const;

export type BadLineKind = (typeof BAD_LINE_KINDS)[number];

/** The first that matches. What the user named stands at the start or in quotes, so the fixed words are looked for. */
const KINDS: readonly (readonly [RegExp, BadLineKind])[] = [
  [/^not valid UTF-8 at byte/, 'not_utf8'],
  [/^\d+ bytes long, over the cap/, 'line_too_long'],
  [/^not JSON: |^nested too deeply$/, 'not_json'],
  [/, where each line must be one JSON object$/, 'not_an_object'],
  [/ holds half of a surrogate pair /, 'lone_surrogate'],
  [/ is an integer beyond 2\^53 | is a number beyond all range;/, 'number_too_large'],
  [/^the template's field .* is missing;|^none of the fields .* is a string;/, 'missing_field'],
  [
    /^the field \S+, which is the message, is empty$|^the rendered prompt is empty$|^(?:body: )?(?:prompt|input) is empty$/,
    'empty_message',
  ],
  [/^the image field /, 'unusable_image'],
  [/^the id field /, 'unusable_id'],
  [
    /^(?:body: )?(?:(?:url|method) .* (?:is not supported;|is for )|is a request for |body has no \S+$|(?:stream|n|model|messages|prompt|input|dimensions|priority|a message) must )/,
    'unusable_request',
  ],
];

export function badLineKind({ reason }: BadLine): BadLineKind {
  return KINDS.find(([pattern]) => pattern.test(reason))?.[1] ?? 'unreadable_line';
}
