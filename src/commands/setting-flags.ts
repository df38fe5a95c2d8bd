/** The table of settings as commander options, and back from parsed options to settings. */
import { type Command, Option } from 'commander';
import { variablesOf } from '../config/header-texts.js';
import { type ResolvedSettings, resolveSettings } from '../config/load.js';
import { SETTINGS, type SettingGroup, type Settings, settingsIn } from '../config/settings.js';
import type { Verb } from './action.js';
import { dotEnvOf, readTrustedConfig } from './folder-settings.js';

const HEADINGS: Readonly<Record<SettingGroup, string>> = {
  request: 'What is sent:',
  input: 'Input:',
  connection: 'Servers and keys:',
  pacing: 'Pace, limits and waiting:',
  remote: 'Remote batches:',
  budget: 'Limits on spending and failures:',
  sharing: 'Answers for several documents:',
  service: 'The service:',
  client: 'The service that is asked:',
  store: 'Store and settings:',
  display: 'What is shown:',
};

/** For commander: a flag that may be given several times gathers its values, the first first. */
export function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

/** @param hidden settings of the groups that are taken, but are not in the help of the command */
export function addSettingFlags(
  command: Command,
  groups: readonly SettingGroup[],
  hidden: readonly (keyof Settings)[] = [],
): Command {
  for (const { name, group, flags, short, help, initialText, environment, repeats } of settingsIn(groups)) {
    const notes = [
      ...(initialText === undefined ? [] : [`default ${initialText}`]),
      ...(environment === '' ? [] : [environment]),
    ];
    const option = new Option(
      short === undefined ? flags : `${short}, ${flags}`,
      `${help} (${notes.join('; ')})`,
    )
      .hideHelp(hidden.includes(name))
      .helpGroup(HEADINGS[group]);
    command.addOption(repeats === true ? option.argParser(collect) : option);
  }
  return command;
}

/** What it takes to go on with a run, whose request and input are known. */
export const SENDING_GROUPS = [
  'connection',
  'pacing',
  'remote',
  'budget',
  'sharing',
  'store',
  'display',
] as const;

/** What a `run` takes besides the request. */
export const OTHER_RUN_GROUPS = ['input', ...SENDING_GROUPS] as const;

/**
 * All that a `run` takes besides the request, so that its command line can be used with a verb that only looks.
 * @param shown those that mean something to this command
 */
export function addOtherRunFlags(command: Command, shown: readonly (keyof Settings)[]): Command {
  const hidden = settingsIn(OTHER_RUN_GROUPS)
    .map(({ name }) => name)
    .filter((name) => !shown.includes(name));
  return addSettingFlags(command, OTHER_RUN_GROUPS, hidden);
}

/**
 * What a folder's own files (`llm-batch.config.json`, `.env`) say counts as far as they are trusted: where this command
 * uses what they are not trusted with, the user is asked, or it is refused.
 * @throws LlmBatchError (exit 2) for the first bad value, wherever it came from; CONFIG_UNTRUSTED
 */
export async function readSettings({ command, context }: Verb): Promise<ResolvedSettings> {
  const flags: Record<string, unknown> = {};
  const options = command.optsWithGlobals() as Record<string, unknown>;
  for (const { name, key } of SETTINGS) {
    if (command.getOptionValueSource(key) === 'cli') flags[name] = options[key];
  }
  const used = settingsUsedBy(command);
  const adoptVariables = dotEnvOf(context, flags['envFile']);
  await adoptVariables(
    SETTINGS.filter(({ name }) => used.has(name) && flags[name] === undefined).map(
      ({ environment }) => environment,
    ),
  );
  const sources = { flags, environment: context.environment };
  const file = await readTrustedConfig(context, sources, used);
  const resolved = resolveSettings({ ...sources, file });
  if (used.has('apiKeyEnv')) {
    const { headers, apiKeyEnv } = resolved.settings;
    await adoptVariables([
      ...(resolved.lanes?.map((lane) => lane.apiKeyEnv) ?? apiKeyEnv),
      ...[headers ?? {}, ...(resolved.lanes ?? []).map((lane) => lane.headers)].flatMap(variablesOf),
    ]);
  }
  return resolved;
}

/** Those whose flags the command has in its help; others it only tolerates. A rehearsal calls no server. */
function settingsUsedBy(command: Command): ReadonlySet<string> {
  const shown = command.options.filter((option) => !option.hidden).map((option) => option.attributeName());
  const rehearses = command.getOptionValue('simulate') === true;
  const used = SETTINGS.filter(
    ({ key, reaches }) => shown.includes(key) && !(rehearses && reaches === 'server'),
  );
  return new Set(used.map(({ name }) => name));
}
