/** An error as the user sees it: what was wrong and where, then what to do. */
import { LlmBatchError, type WayOut } from '../core/errors.js';
import { disarmed, printable, printableJson } from '../core/foreign-text.js';
import type { Appearance } from './colours.js';

/**
 * `error: …` and, where there is one, `  try: …`. Not wrapped: the sentences are to be copied and searched for.
 * @param debug adds the stacks of the error and of its causes
 * @param wayOutOf has the words for what to do
 */
export function renderError(
  error: unknown,
  appearance: Appearance,
  debug: boolean,
  wayOutOf: (error: WayOut) => string | undefined,
): string[] {
  const { colours } = appearance;
  const lines = [`${colours.red.bold('error:')} ${messageOf(error)}`];
  const hint =
    error instanceof LlmBatchError
      ? wayOutOf(error)
      : 'this is a fault of the program itself; add --debug to see where, and report it';
  if (hint !== undefined) lines.push(`  ${colours.bold('try:')} ${printable(appearance.command(hint))}`);
  return debug ? [...lines, ...stackLines(error)] : lines;
}

/** The same for `--log-json`: one line of JSON. */
export function errorJson(
  error: unknown,
  atMs: number,
  exitCode: number,
  appearance: Pick<Appearance, 'command'>,
  wayOutOf: (error: WayOut) => string | undefined,
): string {
  const own = error instanceof LlmBatchError ? error : null;
  const hint = own === null ? undefined : wayOutOf(own);
  return printableJson({
    time: new Date(atMs).toISOString(),
    event: 'error',
    code: own?.code ?? null,
    message: messageOf(error),
    hint: hint === undefined ? null : appearance.command(hint),
    exit_code: exitCode,
  });
}

function messageOf(error: unknown): string {
  // Our own are one sentence, in which a name of two lines must not make a second message.
  if (error instanceof LlmBatchError) return printable(error.message);
  return disarmed(error instanceof Error ? error.message || error.name : String(error));
}

/** More than any real chain; a cause that names itself must not hang the last words of the program. */
const MOST_CAUSES = 10;

function stackLines(error: unknown): string[] {
  const lines: string[] = [];
  let current: unknown = error;
  for (let depth = 0; depth < MOST_CAUSES && current instanceof Error; depth += 1) {
    lines.push(
      '',
      ...disarmed(`${depth === 0 ? '' : 'caused by '}${current.stack ?? current.message}`).split('\n'),
    );
    current = current.cause;
  }
  return lines;
}
