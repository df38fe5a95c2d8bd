/** The completion script for fish. */
import {
  type CommandOutline,
  type Completable,
  type FlagOutline,
  identifierOf,
  type ProgramOutline,
} from './command-outline.js';

export function fishScript({ name, flags, commands }: ProgramOutline): string {
  const function_ = `__${identifierOf(name)}_runs`;
  const start = `complete -c ${name}`;
  return `# Completion of ${name} for fish. Load it with: ${name} completion fish | source

function ${function_}
    set -l words (commandline -opc)
    set -l store
    if set -l at (contains -i -- --db $words)
        set store --db $words[(math $at + 1)]
    end
    command ${name} run-names $store 2>/dev/null
end

${start} -f
${flags.map((flag) => `${start} -n __fish_use_subcommand ${flagPart(flag)}`).join('\n')}
${commands.map((command) => commandLines(command, start, function_)).join('\n')}
`;
}

function commandLines(
  { name, help, flags, argument }: CommandOutline,
  start: string,
  function_: string,
): string {
  const within = `${start} -n ${quoted(`__fish_seen_subcommand_from ${name}`)}`;
  return [
    `${start} -n __fish_use_subcommand -a ${name} -d ${quoted(help)}`,
    ...(argument === null || argument.kind === 'free'
      ? []
      : [`${within} ${argumentPart(argument, function_)}`]),
    ...flags.map((flag) => `${within} ${flagPart(flag)}`),
  ].join('\n');
}

function argumentPart({ kind, words }: Completable, function_: string): string {
  if (kind === 'file') return '-F';
  return `-a ${quoted(kind === 'run' ? `(${function_})` : words.join(' '))}`;
}

function flagPart({ long, short, help, value }: FlagOutline): string {
  const names = `-l ${long.replace(/^--/, '')}${short === null ? '' : ` -s ${short.replace(/^-/, '')}`}`;
  return `${names}${valuePart(value)} -d ${quoted(help)}`;
}

/** `-x`: a value is needed and is no file. */
function valuePart(value: Completable | null): string {
  if (value === null) return '';
  if (value.kind === 'file') return ' -r -F';
  return value.kind === 'words' ? ` -x -a ${quoted(value.words.join(' '))}` : ' -x';
}

/** Within single quotes fish knows two escapes. */
function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`;
}
