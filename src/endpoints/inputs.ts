/** The content of endpoints that take one input or a list of them: texts, tokens, or parts of a message. */
import { hasText } from '../core/foreign-text.js';
import { isJsonObject, type Json } from '../core/json.js';
import type { LineProblem } from '../core/line-problem.js';
import type { Endpoint, SimulatedTokens, TokenTally } from './endpoint.js';
import type { RecordShape } from './record-request.js';
import { joinContents } from './whole-request.js';

/** Each text, or list of tokens, that an answer is asked for. A bare list of tokens is one, and so is one of parts. */
export function inputsOf(content: Json | undefined): readonly Json[] {
  if (asksForOne(content)) return content === undefined ? [] : [content];
  return content as Json[];
}

/** Whether the answer is one output, and not a list of them. */
export function asksForOne(content: Json | undefined): boolean {
  return !Array.isArray(content) || typeof content[0] === 'number' || isJsonObject(content[0] ?? null);
}

/** What is wrong with texts or tokens; null when nothing is. */
export function problemOfInputs(content: Json | undefined, field: string, most: number): LineProblem | null {
  if (content === undefined) return { reason: `${field} is missing: it holds the text`, field };
  if (typeof content === 'string') return hasText(content) ? null : { reason: `${field} is empty`, field };
  if (!Array.isArray(content) || (!isTokens(content) && !content.every(isInput))) {
    return { reason: `${field} must be a string, a list of strings, or tokens as whole numbers`, field };
  }
  const inputs = inputsOf(content);
  if (inputs.length === 0 || inputs.some(isEmpty)) return { reason: `${field} is empty`, field };
  if (inputs.length <= most) return null;
  return { reason: `${field} must have at most ${most} members, not ${inputs.length}`, field };
}

function isTokens(value: Json): boolean {
  return Array.isArray(value) && value.every((token) => Number.isInteger(token));
}

function isInput(value: Json): boolean {
  return typeof value === 'string' || isTokens(value);
}

function isEmpty(input: Json): boolean {
  return typeof input === 'string' ? !hasText(input) : Array.isArray(input) && input.length === 0;
}

/** Tokens stand for words of about their number; estimates are scaled by what the server charges anyway. */
function textOfInputs(content: Json | undefined): string {
  return inputsOf(content)
    .map((each) => (isTokens(each) ? ' a'.repeat((each as Json[]).length) : textsOf(each).join('\n')))
    .join('\n');
}

function countInputs(content: Json | undefined, tally: TokenTally): void {
  for (const input of inputsOf(content)) {
    if (isTokens(input)) tally.addTokens((input as Json[]).length);
    else for (const text of textsOf(input)) tally.addText(text);
  }
}

const BYTES_PER_TOKEN = 4;

/** As the simulator bills them: four bytes of UTF-8 a token, rounded up a text; tokens are counted as they are. */
export function simulatedTokensOf(content: Json | undefined): SimulatedTokens {
  const tokens = inputsOf(content).reduce<number>((sum, input) => sum + tokensOf(input), 0);
  return { tokens, exact: true, images: 0 };
}

function tokensOf(input: Json): number {
  if (isTokens(input)) return (input as Json[]).length;
  return textsOf(input).reduce((sum, text) => sum + Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN), 0);
}

/** The texts of one input, which may be in parts. */
function textsOf(input: Json): readonly string[] {
  if (typeof input === 'string') return [input];
  if (!Array.isArray(input)) return [];
  return input.flatMap((part) =>
    isJsonObject(part) && typeof part['text'] === 'string' ? [part['text']] : [],
  );
}

/** What endpoints have alike that take one input or a list of them, and hold no conversation. */
export function listEndpoint(
  contentField: string,
  mostInputs: number,
  mostTokens = Number.POSITIVE_INFINITY,
) {
  return {
    outputCapName: 'max_tokens',
    framingTokens: { expected: 0, most: 0 },
    countTokens: (body, tally) => countInputs(body[contentField], tally),
    countSimulatedTokens: (body) => simulatedTokensOf(body[contentField]),
    grouping: { mostInputs, mostTokens, join: joinContents(contentField) },
    sizeOf: null,
    tellsUsage: true,
    takesSystemMessage: false,
    placeFile: null,
    outputParameters: null,
    inBackground: null,
    withMistake: null,
  } satisfies Partial<Endpoint>;
}

/** The same of their requests. */
export function listShape(contentField: string) {
  return {
    contentField,
    textOf: (body) => textOfInputs(body[contentField]),
    attachmentsIn: () => [],
    inputsOf: (body) => inputsOf(body[contentField]).length,
    isGrouped: true,
    contentOf: (parts) => parts.filter((part) => typeof part === 'string').join('\n'),
  } satisfies Partial<RecordShape>;
}
