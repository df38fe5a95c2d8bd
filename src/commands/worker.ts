/** `worker`: sends what the runs of a store have to send, as it comes; any number of them beside each other on PostgreSQL. */
import type { Command } from 'commander';
import type { Place } from '../app/listen.js';
import { ownStore, withStore } from '../app/open-store.js';
import { startWorker } from '../app/start-worker.js';
import { watchRuns } from '../app/watch-run.js';
import { watchWorker } from '../app/watch-worker.js';
import { parseDuration, parseGiven, parsePort } from '../config/values.js';
import { EXIT_CODES, type ExitCode, usageError } from '../core/errors.js';
import { findRunToResume } from '../runs/find-run.js';
import type { WorkReport } from '../runs/work.js';
import type { Action, Verb } from './action.js';
import { exitCodeOf } from './exit-code.js';
import { addSettingFlags, readSettings } from './setting-flags.js';
import { refuseUntrusted, TRUST_STORE_FLAG } from './stored-reach.js';

const EXAMPLES = `
Examples:
  llm-batch worker --all
  llm-batch worker --run reviews --idle-exit 60s
  llm-batch worker --all --concurrency 32 --log-json

Calls go where each run says, within the limits it was given, with the keys of this machine's environment.
On a SQLite file there is one worker at a time. It writes no results files: \`llm-batch results\` does.`;

export function registerWorker(program: Command, action: Action): void {
  const command = program
    .command('worker')
    .description('send what the runs of the store have to send, as it comes, until it is stopped')
    .addHelpText('after', EXAMPLES)
    .option('--run <name>', 'only this run')
    .option('--all', 'all runs, those of higher priority first')
    .option('--idle-exit <time>', 'end when there was nothing to do for so long, e.g. 60s; 0s: at once')
    .option(
      '--concurrency <n|auto>',
      "calls open at once to each server, whatever the runs' own settings say",
    )
    .option(
      '--metrics <[host:]port>',
      'figures for Prometheus at /metrics, on 127.0.0.1 unless a host is named',
    )
    .option(...TRUST_STORE_FLAG);
  addSettingFlags(command, ['store', 'display']).action(action(worker));
}

interface WorkerFlags {
  readonly run?: string;
  readonly all?: boolean;
  readonly idleExit?: string;
  readonly metrics?: string;
  readonly trustStore?: boolean;
}

async function worker(verb: Verb, flags: WorkerFlags): Promise<ExitCode> {
  const { context } = verb;
  const resolved = await readSettings(verb);
  const { settings } = resolved;
  if ((flags.run === undefined) === (flags.all !== true)) {
    throw usageError('WORK_UNCLEAR', 'A worker sends one run or all.', 'say --run NAME or --all');
  }
  const { idleExit } = flags;
  const idleExitMs =
    idleExit === undefined ? null : parseGiven('IDLE_EXIT', '--idle-exit', idleExit, parseDuration);
  const concurrency = resolved.given.has('concurrency') ? settings.concurrency : null;
  const metricsAt = flags.metrics === undefined ? null : placeOf(flags.metrics);
  return withStore(context, settings, 'send', async (store) => {
    const run = flags.run === undefined ? null : await findRunToResume(store, flags.run);
    await ownStore(context, store, run?.name ?? null);
    const watched = await watchWorker(context, store, metricsAt);
    const { tell, say, close } = watchRuns(context, settings);
    if (watched.metricsUrl !== null) say(`Figures for Prometheus at ${watched.metricsUrl}/metrics.`);
    try {
      const report = await startWorker(context, {
        ...{ settings, store, runId: run?.id ?? null, idleExitMs, concurrency },
        tell(event, run) {
          tell(event, run);
          watched.tell(event);
        },
        stop: context.interrupts,
        async checkTrust(runSettings) {
          if (flags.trustStore !== true) await refuseUntrusted(context, runSettings, resolved);
        },
      });
      if (!report.isStopped && report.runs.size + report.passedOver.length === 0)
        say('There was nothing to send.');
      return exitCodeOfWork(report);
    } finally {
      close();
      await watched.close();
    }
  });
}

/** @throws LlmBatchError METRICS_PLACE (exit 2) */
function placeOf(given: string): Place {
  const { host = '127.0.0.1', port } = /^(?:(?<host>.+):)?(?<port>\d+)$/.exec(given)?.groups ?? {};
  try {
    return { host: host.replace(/^\[(.*)\]$/, '$1'), port: parsePort(port), isOfFigures: true };
  } catch (error) {
    const { message } = error as Error;
    throw usageError(
      'METRICS_PLACE',
      `Expected --metrics to be ${message}, after a host where it has one, got ${JSON.stringify(given)}.`,
    );
  }
}

function exitCodeOfWork({ runs, passedOver, isStopped }: WorkReport): ExitCode {
  if (passedOver.length > 0 && !isStopped) return EXIT_CODES.halted;
  return exitCodeOf([...runs.values()], isStopped);
}
