/** What a shell can complete, read off the program itself, so that no flag is ever forgotten. */
import type { Argument, Command, Option } from 'commander';

/** What may stand in a place: words to choose from, a file, the name of a run, or what nobody can guess. */
export interface Completable {
  readonly kind: 'words' | 'file' | 'run' | 'free';
  /** Empty for the other kinds. */
  readonly words: readonly string[];
}

export interface FlagOutline {
  /** With its hyphens. */
  readonly long: string;
  readonly short: string | null;
  readonly help: string;
  /** Null for a flag that takes no value. */
  readonly value: Completable | null;
}

export interface CommandOutline {
  readonly name: string;
  readonly help: string;
  readonly flags: readonly FlagOutline[];
  /** Of the first argument; the others are taken to be the same. */
  readonly argument: Completable | null;
}

export interface ProgramOutline {
  readonly name: string;
  readonly flags: readonly FlagOutline[];
  readonly commands: readonly CommandOutline[];
}

export function outlineOf(program: Command): ProgramOutline {
  const help = program.createHelp();
  return {
    name: program.name(),
    flags: help.visibleOptions(program).map(flagOutline),
    commands: help.visibleCommands(program).map((command) => ({
      name: command.name(),
      help: onOneLine(command.description()),
      flags: help.visibleOptions(command).map(flagOutline),
      argument: argumentOf(command.registeredArguments[0]),
    })),
  };
}

function flagOutline(option: Option): FlagOutline {
  return {
    long: option.long ?? '',
    short: option.short ?? null,
    help: onOneLine(option.description),
    value: option.required || option.optional ? takenBy(option) : null,
  };
}

function takenBy({ argChoices, flags }: Option): Completable {
  return chosenFrom(argChoices, /[<[](file|path|folder)/.test(flags) ? 'file' : 'free');
}

function argumentOf(argument: Argument | undefined): Completable | null {
  if (argument === undefined) return null;
  const name = argument.name();
  return chosenFrom(argument.argChoices, name === 'run' ? 'run' : name === 'input' ? 'file' : 'free');
}

function chosenFrom(words: readonly string[] | undefined, otherwise: Completable['kind']): Completable {
  return words === undefined ? { kind: otherwise, words: [] } : { kind: 'words', words };
}

function onOneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

/** A word for a POSIX shell, always quoted. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** A word from which an identifier of a shell can be made. */
export function identifierOf(name: string): string {
  return name.replace(/\W/g, '_');
}
