/** From resolved settings to what a run stores, and from flags given on `resume` to changes of it. */
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { LaneDefinition } from '../config/lanes.js';
import { CONFIG_FILE_NAME, type ResolvedSettings } from '../config/load.js';
import { pickGroup, type Settings } from '../config/settings.js';
import { DEFAULT_ENDPOINT } from '../core/endpoint-name.js';
import { usageError } from '../core/errors.js';
import { checkParameters, parseParameters } from '../documents/parameter.js';
import { modelOf, type RequestSettings, runEndpointOf } from '../documents/request.js';
import { folderOfInput } from '../input/input-files.js';
import { isStandardOutput } from '../results/output-paths.js';
import type { ConnectionSettings, RunSettings } from '../runs/run-settings.js';
import { readNamedFile } from './named-file.js';
import { askFor, checkEndpoint, wantedOutput } from './wanted-output.js';

/** As the user gave them. */
export interface RunFlags {
  /** Paths, a pattern or `-`. */
  readonly inputs: readonly string[];
  readonly param?: readonly string[];
  readonly simulate?: boolean;
  readonly output?: string;
}

/** @throws LlmBatchError (exit 2) for two prompts at once, or a prompt file or a folder that cannot be read */
export async function runSettingsFrom(
  resolved: ResolvedSettings,
  flags: RunFlags,
  workingFolder: string,
): Promise<RunSettings> {
  const { settings } = resolved;
  const request = await requestSettings(settings, flags, workingFolder);
  checkEndpoint(settings, request);
  checkParameters(request.parameters, runEndpointOf(request));
  const wanted = await wantedOutput(settings, workingFolder);
  const runSettings: RunSettings = {
    request: wanted === null ? request : askFor(wanted, request),
    answers: { check: wanted?.check ?? null, repair: settings.repair },
    remote: pickGroup(settings, 'remote'),
    sharing: pickGroup(settings, 'sharing'),
    connection: connectionOf(resolved),
    pacing: pickGroup(settings, 'pacing'),
    budget: pickGroup(settings, 'budget'),
    pricesFile: pricesFile(settings, workingFolder),
    simulator: flags.simulate ? {} : null,
    output: outputFile(flags.output, workingFolder),
  };
  checkBackground(runSettings);
  return runSettings;
}

/** @throws LlmBatchError BACKGROUND_ALONE (exit 2) where calls cannot be made in the background */
function checkBackground({ request, pacing, remote }: RunSettings): void {
  if (!remote.background) return;
  const refuse = (problem: string, hint: string): never => {
    throw usageError('BACKGROUND_ALONE', problem, hint);
  };
  if (remote.remote)
    refuse('--background and --remote are two ways to send the same documents.', 'leave one of the two out');
  if (pacing.groupUrl !== null)
    refuse(
      '--background is for calls of one document; --group-url sends several.',
      'leave one of the two out',
    );
  if (runEndpointOf(request).inBackground === null)
    refuse(
      `Only responses are made in the background, and the run goes to ${request.endpoint ?? DEFAULT_ENDPOINT}.`,
      'add --endpoint responses',
    );
}

/** Standard output is this command's own; a file is where the run goes on writing. */
export function outputFile(output: string | undefined, workingFolder: string): string | null {
  return output === undefined || isStandardOutput(output) ? null : resolve(workingFolder, output);
}

/** What was given as a flag replaces what the run has stored; everything else stays as it was. */
export function withGivenFlags(
  stored: RunSettings,
  resolved: ResolvedSettings,
  workingFolder: string,
): RunSettings {
  const { settings, given } = resolved;
  const pick = <Part extends object>(before: Part, now: Part): Part => withGiven(given, before, now);
  const changed: RunSettings = {
    ...stored,
    connection: connectionWithGivenFlags(stored.connection, resolved),
    pacing: pick(stored.pacing, pickGroup(settings, 'pacing')),
    remote: pick(stored.remote, pickGroup(settings, 'remote')),
    budget: pick(stored.budget, pickGroup(settings, 'budget')),
    sharing: pick(stored.sharing, pickGroup(settings, 'sharing')),
    pricesFile: given.has('prices') ? pricesFile(settings, workingFolder) : stored.pricesFile,
  };
  checkBackground(changed);
  return changed;
}

/** The same for its servers and keys alone. */
export function connectionWithGivenFlags(
  stored: RunSettings['connection'],
  resolved: ResolvedSettings,
): RunSettings['connection'] {
  const { given, lanes } = resolved;
  return {
    ...withGiven(given, stored, connectionOf(resolved)),
    // A key or an address given now replaces the lanes; an edited config file replaces them too.
    lanes: given.has('apiKeyEnv') || given.has('baseUrl') ? null : (lanes ?? stored.lanes),
  };
}

function withGiven<Part extends object>(given: ResolvedSettings['given'], before: Part, now: Part): Part {
  const changed = Object.entries(now).filter(([name]) => given.has(name as keyof Settings));
  return { ...before, ...Object.fromEntries(changed) };
}

/**
 * Of lanes that a flag switches off, the user may have thought that it goes beside them.
 * @param stored lanes that the run has had so far
 */
export function unusedLanesNotice(
  { given, unusedLanes }: ResolvedSettings,
  stored: readonly LaneDefinition[] | null,
): string | null {
  const flag = given.has('baseUrl') ? '--base-url' : given.has('apiKeyEnv') ? '--api-key-env' : null;
  const unused = unusedLanes ?? stored;
  if (flag === null || unused === null) return null;
  const names = unused.map(({ name }) => name).join(', ');
  return `the lanes of ${CONFIG_FILE_NAME} (${names}) are not used: ${flag} takes their place`;
}

function pricesFile({ prices }: Settings, workingFolder: string): string | null {
  return prices === null ? null : resolve(workingFolder, prices);
}

async function requestSettings(
  settings: Settings,
  flags: RunFlags,
  workingFolder: string,
): Promise<RequestSettings> {
  const { endpoint, model, prompt, promptFile, imageFolder } = settings;
  const { allowAnyPath, requestsAsTheyAre, idField } = settings;
  if (prompt !== null && promptFile !== null) {
    throw usageError('PROMPT_TWICE', '--prompt and --prompt-file were both given.', 'keep one of them');
  }
  const named = {
    ...(settings.temperature === null ? {} : { temperature: settings.temperature }),
    ...(settings.maxTokens === null ? {} : { [runEndpointOf(settings).outputCapName]: settings.maxTokens }),
  };
  return {
    // Stored resolved: another default in a later version must not make a finished run look changed.
    endpoint,
    model: modelOf({ model, endpoint }),
    promptTemplate: promptFile === null ? prompt : await readPrompt(resolve(workingFolder, promptFile)),
    systemTemplate: settings.system,
    parameters: { ...named, ...parseParameters(flags.param ?? []) },
    imageFolder:
      imageFolder === null
        ? folderOfInput(flags.inputs, workingFolder)
        : await existingFolder(resolve(workingFolder, imageFolder)),
    allowAnyPath,
    requestsAsTheyAre,
    idField,
  };
}

/** A folder that is not there would make every document bad. */
async function existingFolder(path: string): Promise<string> {
  const isFolder = await stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  if (isFolder) return path;
  throw usageError('IMAGE_FOLDER', `There is no folder ${path} (--image-folder).`, 'Check the path.');
}

async function readPrompt(path: string): Promise<string> {
  const text = await readNamedFile(path, 'prompt file', 'PROMPT_FILE');
  if (text.trim() === '') {
    const hint = 'Write the message into it, or use --prompt.';
    throw usageError('PROMPT_FILE', `The prompt file ${path} is empty.`, hint);
  }
  // An editor's last newline is not part of the prompt.
  return text.replace(/\r?\n$/, '');
}

/** As it is asked for now. */
export function connectionOf({ settings, lanes }: ResolvedSettings): ConnectionSettings {
  const { baseUrl, apiKeyEnv, apiKeyHeader, headers } = settings;
  return { baseUrl, apiKeyEnv, apiKeyHeader, headers, lanes };
}
