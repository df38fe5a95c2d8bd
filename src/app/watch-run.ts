/** Who is told what happens to a run: the display, or with `--log-json` the structured log in its place. */
import type { Settings } from '../config/settings.js';
import type { TellEvent } from '../core/event.js';
import { pacedEvents } from '../core/paced-events.js';
import { structuredLog } from '../telemetry/structured-log.js';
import { appearanceOf } from '../ui/colours.js';
import { Display } from '../ui/display.js';
import type { CommandContext } from './context.js';

export function watchRun(context: CommandContext, settings: Settings): TellEvent {
  const { stderr, clock } = context;
  const tell = settings.logJson
    ? structuredLog(stderr, clock)
    : showProgress(context, settings, { readingShownAfterMs: 0 });
  return pacedEvents(tell, clock, settings.verbose);
}

/** For people alone. */
export function showProgress(
  { stderr, environment, clock, workingFolder, command }: CommandContext,
  settings: Settings,
  { readingShownAfterMs }: { readonly readingShownAfterMs: number },
): TellEvent {
  const display = new Display({
    stream: stderr,
    environment,
    appearance: appearanceOf(stderr, environment, settings.color, command),
    clock,
    quiet: settings.quiet || settings.logJson,
    verbose: settings.verbose,
    workingFolder,
    readingShownAfterMs,
  });
  return display.tell;
}
