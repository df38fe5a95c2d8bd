/** The table of settings as commander options, and back from parsed options to settings. */
import type { Command } from 'commander';
import { type ResolvedSettings, readConfigFile, resolveSettings } from '../config/load.js';
import { SETTINGS, type SettingGroup, type Settings, settingsOf } from '../config/settings.js';
import type { CommandContext } from './context.js';

/** @param except settings of the groups that mean nothing to this command */
export function addSettingFlags(
  command: Command,
  groups: readonly SettingGroup[],
  except: readonly (keyof Settings)[] = [],
): Command {
  for (const { name, flags, help, initialText, environment } of settingsOf(groups)) {
    if (except.includes(name)) continue;
    const notes = [
      ...(initialText === '' ? [] : [`default ${initialText}`]),
      ...(environment === '' ? [] : [environment]),
    ];
    command.option(flags, `${help} (${notes.join('; ')})`);
  }
  return command;
}

/** @throws LlmBatchError (exit 2) for the first bad value, wherever it came from */
export function readSettings(command: Command, context: CommandContext): ResolvedSettings {
  const flags: Record<string, unknown> = {};
  const options = command.optsWithGlobals() as Record<string, unknown>;
  for (const { name, flags: flagText } of SETTINGS) {
    const optionName = optionNameOf(flagText);
    if (command.getOptionValueSource(optionName) === 'cli') flags[name] = options[optionName];
  }
  return resolveSettings({
    flags,
    environment: context.environment,
    file: readConfigFile(context.workingFolder),
  });
}

/** commander names `--max-line-bytes <size>` maxLineBytes and `--no-color` color. */
function optionNameOf(flags: string): string {
  const long = (flags.split(' ')[0] ?? '').replace(/^--(no-)?/, '');
  return long.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
