/** Asks before something is destroyed, and before something that came from elsewhere is trusted. */
import { createInterface } from 'node:readline';
import type { CommandContext } from '../app/context.js';
import { type TrustedFact, TrustRecord } from '../config/trust-record.js';
import { type LlmBatchError, usageError } from '../core/errors.js';
import { printable } from '../core/foreign-text.js';
import { columnsOf } from '../ui/colours.js';
import { wrapToWidth } from '../ui/width.js';

/**
 * @param question without the choices, which are added
 * @param isSure `--yes` was given: nobody is asked
 * @returns whether the user agrees; nothing typed, the end of the input and Ctrl-C are a no
 * @throws LlmBatchError CONFIRMATION_NEEDED (exit 2) where nobody is there to be asked
 */
export async function confirm(context: CommandContext, question: string, isSure: boolean): Promise<boolean> {
  if (isSure) return true;
  if (!isThereToBeAsked(context)) {
    throw usageError(
      'CONFIRMATION_NEEDED',
      `${question} Nobody can be asked here: standard input is no terminal.`,
      'add --yes when you are sure',
    );
  }
  return /^y(es)?$/i.test(await ask(context, `${question} [y/N]`));
}

/**
 * @param question names the letters
 * @returns what the user chose of them; null where nobody is there to be asked, and for anything else that is typed
 */
export async function choose<Letter extends string>(
  context: CommandContext,
  question: string,
  letters: readonly Letter[],
): Promise<Letter | null> {
  if (!isThereToBeAsked(context)) return null;
  const typed = (await ask(context, question)).toLowerCase();
  return letters.find((letter) => letter === typed) ?? null;
}

/** @returns the line that is typed, trimmed; empty at the end of the input and after Ctrl-C */
async function ask({ stdin, stderr, interrupts }: CommandContext, question: string): Promise<string> {
  const lines = wrapToWidth(printable(question), columnsOf(stderr));
  stderr.write(`${lines.join('\n')} `);
  // The terminal edits the line itself, so that Ctrl-C stays a signal.
  const reader = createInterface({ input: stdin, terminal: false });
  const answered = new Promise<string>((resolve) => {
    reader.once('line', (answer) => resolve(answer.trim()));
    reader.once('close', () => resolve(''));
  });
  const stopListening = interrupts.subscribe(() => reader.close());
  try {
    return await answered;
  } finally {
    stopListening();
    reader.close();
    stdin.pause();
  }
}

/**
 * Asks once whether what came from elsewhere may be used, and remembers a yes.
 * @throws refusal after a no, and where nobody is there to be asked
 */
export async function trustOrRefuse(
  context: CommandContext,
  facts: readonly TrustedFact[],
  question: string,
  refusal: LlmBatchError,
): Promise<void> {
  if (!isThereToBeAsked(context) || !(await confirm(context, question, false))) throw refusal;
  const record = new TrustRecord(context.environment);
  for (const fact of facts) record.remember(fact);
}

/** Somebody sits at the keyboard. */
export function isThereToBeAsked({ stdin }: CommandContext): boolean {
  return (stdin as { isTTY?: boolean }).isTTY === true;
}
