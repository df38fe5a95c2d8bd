/** Who is told what happens to a run: the display, or with `--log-json` the structured log in its place. */
import type { Settings } from '../config/settings.js';
import type { RunEvent, TellEvent } from '../core/event.js';
import { pacedEvents } from '../core/paced-events.js';
import { structuredLog, structuredLogOfRuns } from '../telemetry/structured-log.js';
import { appearanceOf } from '../ui/colours.js';
import { Display } from '../ui/display.js';
import { WorkerDisplay } from '../ui/worker-display.js';
import type { CommandContext } from './context.js';

export function watchRun(context: CommandContext, settings: Settings): TellEvent {
  const { stderr, clock } = context;
  const tell = settings.logJson
    ? structuredLog(stderr, clock)
    : showProgress(context, settings, { readingShownAfterMs: 0 });
  return pacedEvents(tell, clock, settings.verbose);
}

/** The same for a process that sends several runs. */
export function watchRuns(
  { stderr, environment, clock }: CommandContext,
  { logJson, quiet, verbose, color }: Settings,
) {
  const appearance = appearanceOf(stderr, environment, color);
  const display = logJson
    ? null
    : new WorkerDisplay({ stream: stderr, environment, appearance, clock, quiet, verbose });
  const show = display?.tell ?? structuredLogOfRuns(stderr, clock);
  const ofRuns = new Map<string | null, TellEvent>();
  return {
    tell(event: RunEvent, run: string | null): void {
      let tell = ofRuns.get(run);
      if (tell === undefined) {
        tell = pacedEvents((each) => show(each, run), clock, verbose);
        ofRuns.set(run, tell);
      }
      tell(event);
    },
    /** To people alone: what is no event. */
    say: (sentence: string): void => display?.say(sentence),
    /** Nothing is told any more. */
    close: (): void => display?.close(),
  };
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
