/** Settings of a run as a command line and a configuration file give them, for runs that are made without a command. */
import { runSettingsFrom } from '../../src/commands/asked-settings.js';
import { resolveSettings } from '../../src/config/load.js';
import type { JsonObject } from '../../src/core/json.js';
import type { RunSettings } from '../../src/runs/run-settings.js';

export interface Given {
  /** By the names of the settings. */
  readonly flags?: Readonly<Record<string, unknown>>;
  readonly file?: JsonObject;
  readonly simulate?: boolean;
  readonly folder?: string;
}

export function runSettingsOf({
  flags = {},
  file = {},
  simulate = false,
  folder = '/',
}: Given = {}): Promise<RunSettings> {
  const resolved = resolveSettings({ flags, environment: {}, file });
  return runSettingsFrom(resolved, { inputs: ['docs.jsonl'], simulate }, folder);
}
