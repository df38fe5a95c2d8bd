/** The completion script for zsh, over its own `_arguments`. */
import {
  type CommandOutline,
  type Completable,
  type FlagOutline,
  identifierOf,
  type ProgramOutline,
  quoted,
} from './command-outline.js';

export function zshScript({ name, flags, commands }: ProgramOutline): string {
  const function_ = `_${identifierOf(name)}`;
  return `#compdef ${name}
# Completion of ${name} for zsh. Load it with: source <(${name} completion zsh)

${function_}_runs() {
  local -a runs store
  local at=\${words[(I)--db]}
  if ((at > 0)); then store=(--db "\${words[at + 1]}"); fi
  runs=("\${(@f)$(command ${name} run-names $store 2>/dev/null)}")
  compadd -a runs
}

${function_}() {
  local context state state_descr line
  typeset -A opt_args
  _arguments -C ${flags.flatMap((flag) => flagSpecs(flag, function_)).join(' ')} '1:command:->command' '*::argument:->argument'
  case "$state" in
    command)
      local -a commands=(
${commands.map((command) => `        ${quoted(`${command.name}:${command.help}`)}`).join('\n')}
      )
      _describe command commands
      ;;
    argument)
      case "$words[1]" in
${commands.map((command) => commandCase(command, function_)).join('\n')}
      esac
      ;;
  esac
}

if [[ "$funcstack[1]" == ${function_} ]]; then
  ${function_} "$@"
else
  compdef ${function_} ${name}
fi
`;
}

function commandCase({ name, flags, argument }: CommandOutline, function_: string): string {
  const specs = flags.flatMap((flag) => flagSpecs(flag, function_));
  if (argument !== null) specs.push(quoted(`*:argument:${actionOf(argument, function_)}`));
  return `        ${name})
          _arguments \\
${specs.map((spec) => `            ${spec}`).join(' \\\n')}
          ;;`;
}

function flagSpecs({ long, short, help, value }: FlagOutline, function_: string): string[] {
  const shown = `[${help.replace(/[\\[\]:]/g, '\\$&')}]`;
  const taken = value === null ? '' : `:value:${actionOf(value, function_)}`;
  return [
    // A long flag and its value may be one word or two.
    quoted(`${long}${value === null ? '' : '='}${shown}${taken}`),
    ...(short === null ? [] : [quoted(`${short}${shown}${taken}`)]),
  ];
}

function actionOf({ kind, words }: Completable, function_: string): string {
  return { words: `(${words.join(' ')})`, file: '_files', run: `${function_}_runs`, free: ' ' }[kind];
}
