/** `--log-json`: what happens to a run as JSON lines. A contract with scripts: fields are added, never renamed. */
import type { Writable } from 'node:stream';
import type { Clock } from '../core/clock.js';
import type { RunEvent, TellEvent } from '../core/event.js';
import { printableJson } from '../core/foreign-text.js';

/** Progress itself, and what happens to each call and each document: a log of a million lines tells nobody anything. */
const UNTOLD: ReadonlySet<RunEvent['type']> = new Set([
  'import_started',
  'input_opened',
  'importing',
  'import_ended',
  'call_started',
  'call_ended',
  'waited',
  'tasks_settled',
  'answers_shared',
  'calls_ended',
]);

export function structuredLog(stream: Writable, clock: Clock): TellEvent {
  const tell = structuredLogOfRuns(stream, clock);
  return (event) => tell(event, null);
}

/** Of a process that sends several runs: each line names its run. */
export function structuredLogOfRuns(
  stream: Writable,
  clock: Clock,
): (event: RunEvent, run: string | null) => void {
  // A log whose reader has gone is lost, the run is not.
  stream.on('error', () => undefined);
  return (event, run) => {
    if (UNTOLD.has(event.type)) return;
    const time = new Date(clock.now()).toISOString();
    const ofRun = run === null ? {} : { run };
    stream.write(`${printableJson({ time, event: event.type, ...ofRun, ...detailsOf(event) })}\n`);
  };
}

function detailsOf(event: RunEvent): object {
  const { type: _, ...details } = event;
  switch (event.type) {
    case 'started':
      return { run: event.run };
    case 'halted': {
      const { failure, series, lane } = event;
      return { lane, ...failure, ...series };
    }
    case 'tried': {
      const { answers: _answers, ...figures } = event;
      return figures;
    }
    case 'ended': {
      const { run, end, summary, files } = event;
      return { run: run.name, end: end.reason, counts: summary.counts, calls: summary.calls, files };
    }
    default: {
      if (!('failure' in event)) return details;
      const { failure, ...others } = details as typeof details & { failure: object };
      return { ...others, ...failure };
    }
  }
}
