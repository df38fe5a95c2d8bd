/** Commands for the user to copy. */
import { printable } from '../core/foreign-text.js';
import { withoutPassword } from '../core/server-url.js';

/** A word for a POSIX shell, quoted only where it has to be; printable, for it stands in sentences. */
export function shellWord(word: string): string {
  const isPlain = word === '-' || /^[\w@%+=:,./][\w@%+=:,./-]*$/.test(word);
  return isPlain ? word : `'${printable(word).replaceAll("'", "'\\''")}'`;
}

/** The flags that say which store is meant. */
const STORE_FLAGS = ['--store', '--db', '--schema-name'];
/** Of verbs that take none of them. */
const WITHOUT_STORE = ['simulate', 'completion', 'trust', 'help'];

/**
 * Makes the commands in a sentence of this program work where they are typed: with `npx` in front where the program was
 * started so, and with the store that this command line names; a password in its URL is not shown again.
 * @param argv the program's own, with Node and the script first
 */
export function commandsAsTyped(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): (sentence: string) => string {
  const isByNpm = (environment['npm_command'] ?? environment['npm_execpath'] ?? '') !== '';
  const program = isByNpm ? 'npx llm-batch' : 'llm-batch';
  const named = STORE_FLAGS.flatMap((flag) => {
    const value = valueIn(argv, flag);
    const shown = value?.includes('://') ? withoutPassword(value) : value;
    return shown === null ? [] : [` ${flag} ${shellWord(shown)}`];
  }).join('');
  return (sentence) =>
    sentence.replace(
      /(?<![\w./@-])llm-batch (?=[a-z<[-])([a-z]*)/g,
      (_, verb: string) => `${program} ${verb}${verb === '' || WITHOUT_STORE.includes(verb) ? '' : named}`,
    );
}

/** The last one counts, as everywhere; null where the flag is not given. */
function valueIn(argv: readonly string[], flag: string): string | null {
  const index = argv.findLastIndex((word) => word === flag || word.startsWith(`${flag}=`));
  const word = argv[index];
  if (word === undefined) return null;
  return word === flag ? (argv[index + 1] ?? null) : word.slice(flag.length + 1);
}

export interface RunOutcome {
  readonly runName: string;
  /** Documents still to be done. */
  readonly open: number;
  readonly failed: number;
  readonly cancelled: boolean;
  readonly resultsPath: string | null;
}

/** The one command that most likely comes next. */
export function nextCommand(outcome: RunOutcome): string {
  const run = shellWord(outcome.runName);
  if (outcome.open > 0 && !outcome.cancelled) return `llm-batch resume ${run}`;
  if (outcome.failed > 0) return `llm-batch failures ${run}`;
  if (outcome.resultsPath !== null) return `head -n 3 ${shellWord(outcome.resultsPath)}`;
  return `llm-batch results ${run} -o -`;
}
