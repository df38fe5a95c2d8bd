/** The dead letters of a run: failed documents by kind, each kind with an example and what to do about it. */
import { printable } from '../core/foreign-text.js';
import type { FailureGroup } from '../runs/failure-groups.js';
import type { Appearance } from './colours.js';
import { dotted, type Fact, fact, factLines } from './facts.js';
import { adviceOn } from './failure-advice.js';
import { shellWord } from './next-command.js';
import { formatCount, formatQuantity } from './numbers.js';

/** Messages hold whole request bodies at times. */
const LONGEST_MESSAGE = 400;
const MOST_CODES = 5;

/** The page, none of its lines wider than the stream unless a word is. */
export function renderFailures(
  runName: string,
  groups: readonly FailureGroup[],
  appearance: Appearance,
): string[] {
  const { colours } = appearance;
  const total = groups.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) return [`No document of ${printable(runName)} has failed.`];
  const lines = [`${formatQuantity(total, 'document')} of ${printable(runName)} failed.`];
  for (const group of groups) {
    lines.push('', `${colours.red.bold(group.kind)}  ${formatQuantity(group.count, 'document')}`);
    lines.push(...factLines(groupFacts(runName, group, appearance), appearance));
  }
  return lines;
}

function groupFacts(runName: string, group: FailureGroup, { colours, command }: Appearance): Fact[] {
  const { kind, example } = group;
  const { error } = example;
  const { meaning, advice, worthRetrying } = adviceOn(error);
  const status = error.httpStatus === null ? '' : ` (HTTP ${error.httpStatus})`;
  const facts = [
    fact('what', meaning),
    fact('example', `line ${formatCount(example.line)}, ${printable(example.key)}`),
    fact('message', `${shortened(printable(error.message))}${status}`),
  ];
  if (group.codes.length > 0) {
    const shown = group.codes
      .slice(0, MOST_CODES)
      .map(({ code, count }) => `${printable(code)} ${formatCount(count)}`);
    const more = group.codes.length > MOST_CODES ? [`${group.codes.length - MOST_CODES} more`] : [];
    facts.push(fact('codes', dotted([...shown, ...more])));
  }
  if (error.requestId !== null) facts.push(fact('request id', printable(error.requestId)));
  facts.push(fact('try', advice));
  const again = command(`llm-batch retry ${shellWord(runName)} --kind ${kind}`);
  if (worthRetrying) facts.push(fact('then', again, colours.bold));
  return facts;
}

function shortened(message: string): string {
  return message.length <= LONGEST_MESSAGE ? message : `${message.slice(0, LONGEST_MESSAGE - 1)}…`;
}
