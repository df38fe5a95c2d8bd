/** The completion script for bash, from 3.2 on (macOS) and without the bash-completion package. */
import {
  type CommandOutline,
  type Completable,
  type FlagOutline,
  identifierOf,
  type ProgramOutline,
  quoted,
} from './command-outline.js';

export function bashScript({ name, flags, commands }: ProgramOutline): string {
  const function_ = `_${identifierOf(name)}`;
  return `# Completion of ${name} for bash. Load it with: source <(${name} completion bash)

${function_}_words() {
  local word
  for word in "$@"; do
    if [[ "$word" == "$current"* ]]; then COMPREPLY+=("$word"); fi
  done
}

${function_}_files() {
  local path
  while IFS= read -r path; do COMPREPLY+=("$path"); done < <(compgen -f -- "$current")
  compopt -o filenames 2>/dev/null
}

# A name may hold anything, so it is quoted and never expanded.
${function_}_runs() {
  local run
  while IFS= read -r run; do
    if [[ "$run" == "$current"* ]]; then COMPREPLY+=("$(printf '%q' "$run")"); fi
  done < <(command "\${COMP_WORDS[0]}" run-names "\${store[@]}" 2>/dev/null)
}

${function_}() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD - 1]}" chosen='' index
  local -a store=()
  COMPREPLY=()
  # bash takes --flag=value apart.
  if [[ "$current" == '=' ]]; then
    current=''
  elif [[ "$previous" == '=' ]]; then
    previous="\${COMP_WORDS[COMP_CWORD - 2]}"
  fi
  for ((index = 1; index < COMP_CWORD; index += 1)); do
    if [[ -z "$chosen" && "\${COMP_WORDS[index]}" != -* ]]; then chosen="\${COMP_WORDS[index]}"; fi
    if [[ "\${COMP_WORDS[index]}" == --db && $((index + 1)) -lt $COMP_CWORD ]]; then
      store=(--db "\${COMP_WORDS[index + 1]}")
      if [[ "\${store[1]}" == '=' ]]; then store[1]="\${COMP_WORDS[index + 2]}"; fi
    fi
  done
  case "$chosen" in
    '')
      ${function_}_words ${[...commands.map((command) => command.name), ...flagWords(flags)].map(quoted).join(' ')}
      ;;
${commands.map((command) => commandCase(command, function_)).join('\n')}
  esac
}

complete -F ${function_} ${name}
`;
}

function commandCase({ name, flags, argument }: CommandOutline, function_: string): string {
  const values = flags.flatMap((flag) =>
    flag.value === null
      ? []
      : [`        ${flagWords([flag]).join(' | ')}) ${complete(flag.value, function_)}; return ;;`],
  );
  return `    ${name})
      case "$previous" in
${values.join('\n')}
      esac
      if [[ "$current" == -* ]]; then
        ${function_}_words ${flagWords(flags).map(quoted).join(' ')}
      else
        ${argument === null ? ':' : complete(argument, function_)}
      fi
      ;;`;
}

function complete({ kind, words }: Completable, function_: string): string {
  const named = `${function_}_words ${words.map(quoted).join(' ')}`;
  return { words: named, file: `${function_}_files`, run: `${function_}_runs`, free: ':' }[kind];
}

function flagWords(flags: readonly FlagOutline[]): string[] {
  return flags.flatMap(({ long, short }) => [long, ...(short === null ? [] : [short])]);
}
