/** The answers of a try, for people to read: each below its document, with what it took. */
import type { RunEvent } from '../core/event.js';
import { printable } from '../core/foreign-text.js';
import type { TaskRow } from '../core/result-row.js';
import { type Appearance, inCharacterSet } from './colours.js';
import { dotted } from './facts.js';
import { formatCount, formatDuration, formatMoney, formatQuantity, formatTokens } from './numbers.js';
import { truncateToWidth, wrapToWidth } from './width.js';

const INDENT = '  ';
/** An answer is shown whole up to here, a document shorter: it is known, the answer is not. */
const MOST_ANSWER_LINES = 12;
const MOST_DOCUMENT_LINES = 3;

/** None of the lines is wider than the stream unless a word of a document or an answer is. */
export function renderTry(event: RunEvent & { readonly type: 'tried' }, appearance: Appearance): string[] {
  const { colours, columns } = appearance;
  const block = (text: string, most: number, paint: (text: string) => string): string[] =>
    blockOf(text, columns - INDENT.length, most).map((line) => INDENT + paint(line));
  const lines = event.answers.flatMap((row) => {
    const head = `line ${formatCount(row.line)} · ${printable(row.key)}`;
    return [
      '',
      colours.bold(truncateToWidth(head, columns)),
      ...block(documentText(row.body), MOST_DOCUMENT_LINES, colours.dim),
      ...block(answerText(row), MOST_ANSWER_LINES, row.error === null ? colours.green : colours.red),
      ...block(tookText(row, event.simulated), 1, colours.dim),
    ];
  });
  const unseen = event.chosen - event.answers.length;
  return [
    ...lines,
    '',
    ...(unseen > 0 ? [`and ${formatQuantity(unseen, 'answer')} more in the results file`] : []),
    ...wrapToWidth(wholeText(event), columns),
    '',
  ].map((line) => inCharacterSet(line, appearance));
}

function documentText(body: string | null): string {
  if (body === null) return '';
  const record: unknown = JSON.parse(body);
  if (typeof record !== 'object' || record === null) return body;
  const fields = Object.entries(record).filter(([name]) => name !== 'id' && name !== 'custom_id');
  const [only] = fields;
  if (fields.length === 1 && typeof only?.[1] === 'string') return only[1];
  return fields
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' · ');
}

function answerText({ result, error, state }: TaskRow): string {
  if (error !== null) return `${error.kind}: ${error.message}`;
  if (result === null) return `not answered: ${state === 'cancelled' ? 'cancelled' : 'pending'}`;
  const output: unknown = JSON.parse(result.outputJson);
  return typeof output === 'string' ? output : JSON.stringify(output);
}

function tookText({ usage, costMicroUsd, latencyMs, sharedFrom }: TaskRow, simulated: boolean): string {
  return dotted([
    usage === null ? null : `${formatTokens(usage.inputTokens)} in, ${formatTokens(usage.outputTokens)} out`,
    simulated || costMicroUsd === null ? null : formatMoney(costMicroUsd),
    latencyMs === null ? null : formatDuration(latencyMs),
    sharedFrom === null ? null : 'took the answer of an equal document',
  ]);
}

function wholeText(event: RunEvent & { readonly type: 'tried' }): string {
  const { by, chosen, documents, wholeCostMicroUsd } = event;
  const cost =
    wholeCostMicroUsd === null
      ? ''
      : ` The whole would cost about ${formatMoney(wholeCostMicroUsd)}, by what these took.`;
  const rest = documents > chosen ? ` The same command without --${by} goes on with the rest.` : '';
  return `${formatCount(chosen)} of ${formatQuantity(documents, 'document')} tried.${cost}${rest}`;
}

function blockOf(text: string, columns: number, most: number): string[] {
  const lines = text
    .split(/\r?\n/)
    .flatMap((line) => wrapToWidth(printable(line), Math.max(20, columns)))
    .filter((line) => line.trim() !== '');
  if (lines.length <= most) return lines;
  return [...lines.slice(0, most - 1), truncateToWidth(`${lines[most - 1]} …`, columns)];
}
