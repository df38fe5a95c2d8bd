/** What `run` and `resume` show on standard error, from the first line read to the summary. */
import { relative } from 'node:path';
import type { CommandContext } from '../app/context.js';
import type { Settings } from '../config/settings.js';
import type { ProviderFailure } from '../core/failure.js';
import { printable, printableJson } from '../core/foreign-text.js';
import type { RunRecord } from '../core/run.js';
import type { RunSummary } from '../core/run-summary.js';
import type { DrainEnd, DrainNotice, FailedSeries } from '../engine/drain.js';
import type { BadLine } from '../input/bad-line.js';
import type { WrittenRunFiles } from '../results/run-files.js';
import { REACHED_LIMITS } from '../runs/execute-run.js';
import type { ImportPlan, ImportProgress, ImportReport } from '../runs/import-input.js';
import { observationsOf } from '../runs/run-observations.js';
import type { RescueReport } from '../store/store.js';
import { MOST_BAD_LINES_SHOWN, renderBadLines } from '../ui/bad-lines.js';
import { type Appearance, appearanceOf } from '../ui/colours.js';
import { FAILURE_ADVICE } from '../ui/failure-advice.js';
import { shellWord } from '../ui/next-command.js';
import { formatCount, formatQuantity, formatRemaining } from '../ui/numbers.js';
import { formatImportPlan } from '../ui/plan.js';
import { createProgress, EMPTY_SNAPSHOT, type Progress, type ProgressSnapshot } from '../ui/progress.js';
import { renderSummary } from '../ui/summary.js';
import { sharingParts } from '../ui/summary-facts.js';
import { DrainProgress, type DrainSource } from './progress-source.js';

export interface RunEnd {
  readonly run: RunRecord;
  readonly before: RunSummary;
  readonly summary: RunSummary;
  readonly end: DrainEnd;
  readonly files: WrittenRunFiles;
  readonly elapsedMs: number;
  readonly readerGone: boolean;
}

/** A storm of refusals is one fact, not a thousand lines; so is what this machine is short of. */
const THROTTLE_NOTICE_EVERY_MS = 10_000;
const SHORTAGE_NOTICE_EVERY_MS = 60_000;

export class Display {
  readonly #context: CommandContext;
  readonly #settings: Settings;
  readonly #appearance: Appearance;
  readonly #progress: Progress;
  #snapshot: () => ProgressSnapshot = () => EMPTY_SNAPSHOT;
  #importing: ProgressSnapshot = EMPTY_SNAPSHOT;
  #badLines: BadLine[] = [];
  #badLineCount = 0;
  #rejectsPath: string | null = null;
  #lastThrottleNoticeMs = Number.NEGATIVE_INFINITY;
  #lastShortageNoticeMs = Number.NEGATIVE_INFINITY;

  constructor(context: CommandContext, settings: Settings) {
    this.#context = context;
    this.#settings = settings;
    const { stderr, environment, clock } = context;
    this.#appearance = appearanceOf(stderr, environment, settings.color);
    this.#progress = createProgress({
      stream: stderr,
      environment,
      appearance: this.#appearance,
      clock,
      quiet: settings.quiet || settings.logJson,
      snapshot: () => this.#snapshot(),
    });
  }

  startImport(): void {
    this.#importing = { ...EMPTY_SNAPSHOT, phase: 'importing' };
    this.#snapshot = () => this.#importing;
    this.#progress.start();
  }

  importTotal(totalBytes: number | null): void {
    this.#importing = { ...this.#importing, importTotalBytes: totalBytes };
  }

  importing({ documents, bytesRead }: ImportProgress): void {
    this.#importing = {
      ...this.#importing,
      importedDocuments: documents,
      importedBytes: bytesRead,
      total: documents,
    };
  }

  badLines(bad: readonly BadLine[]): void {
    this.#badLineCount += bad.length;
    for (const each of bad) if (this.#badLines.length < MOST_BAD_LINES_SHOWN) this.#badLines.push(each);
  }

  /** Told before the first call, and before an import is refused. */
  reportBadLines(inputPath: string): void {
    if (this.#badLineCount === 0) return;
    const inputName = inputPath === '-' ? 'standard input' : this.#shownPath(inputPath);
    const columns = this.#columns;
    this.#show(
      'bad_lines',
      {
        count: this.#badLineCount,
        first: this.#badLines.map(({ line, reason, place }) => ({ line, reason, place })),
      },
      renderBadLines(this.#badLines, this.#badLineCount, inputName, columns, this.#appearance),
    );
  }

  rejected(path: string | null): void {
    this.#rejectsPath = path;
  }

  imported(run: RunRecord, report: ImportReport): void {
    const repeats =
      report.duplicates === 0
        ? ''
        : `, ${formatQuantity(report.duplicates, 'repeat')} kept as documents of their own`;
    this.#say('imported', { run: run.name, ...report }, [
      `${run.name}: ${formatQuantity(report.documents, 'document')} imported${repeats}`,
    ]);
  }

  planned(run: RunRecord, plan: ImportPlan): void {
    const changed = plan.changedOpen + plan.changedFinished;
    this.#say('planned', { run: run.name, ...plan }, [
      `${run.name}: ${formatImportPlan({ ...plan, changed })}`,
    ]);
  }

  /** The plan line before the first call: what will be sent, where to, and how fast at most. */
  sending(plan: { readonly model: string; readonly message: string; readonly endpoint: string }): void {
    this.#say('sending', plan, [`sending ${plan.message} to ${plan.model} at ${plan.endpoint}`]);
  }

  warn(message: string): void {
    this.#say('warning', { message }, [this.#appearance.colours.yellow(message)]);
  }

  /** Told before the first call, where this machine allows fewer calls at once than the user wants. */
  fewerConnections(mostConnections: number, concurrency: number | 'auto'): void {
    if (concurrency === 'auto' || concurrency <= mostConnections) return;
    this.warn(
      `This machine lets the program open ${formatQuantity(mostConnections, 'connection')} at once (\`ulimit -n\`), so there are no ${formatCount(concurrency)} calls open at once.`,
    );
  }

  startDrain(source: DrainSource): void {
    const progress = new DrainProgress(source, this.#context.clock);
    this.#snapshot = () => progress.snapshot();
    this.#progress.start();
  }

  rescued({ rescued, lostCalls, poisoned }: RescueReport): void {
    const parts = [
      ...(rescued > 0 ? [`${formatQuantity(rescued, 'document')} back from a crash`] : []),
      ...(lostCalls > 0
        ? [`${formatQuantity(lostCalls, 'call')} may have been billed and will be repeated`]
        : []),
      ...(poisoned > 0
        ? [`${formatQuantity(poisoned, 'document')} parked: open alone at three crashes`]
        : []),
    ];
    this.#say('rescued', { rescued, lostCalls, poisoned }, [parts.join(' · ')]);
  }

  /** Before the first call, where documents share answers. */
  sharing({ shared }: RunSummary): void {
    const parts = sharingParts(shared);
    if (parts.length > 0) this.#say('sharing', { ...shared }, [`shared answers: ${parts.join(' · ')}`]);
  }

  notice(notice: DrainNotice): void {
    switch (notice.type) {
      case 'throttled': {
        const nowMs = this.#context.clock.monotonicMs();
        if (nowMs - this.#lastThrottleNoticeMs < THROTTLE_NOTICE_EVERY_MS && !this.#settings.verbose) return;
        this.#lastThrottleNoticeMs = nowMs;
        this.#say('throttled', { lane: notice.lane, message: notice.failure.message }, [
          `${notice.lane} is throttled: ${notice.failure.message}`,
        ]);
        return;
      }
      case 'suspects':
        this.#say('suspects', { left: notice.left }, [
          this.#appearance.colours.yellow(
            `looking for the document that brought the program down: one call at a time, ${formatCount(notice.left)} left`,
          ),
        ]);
        return;
      case 'machine_short': {
        const nowMs = this.#context.clock.monotonicMs();
        if (nowMs - this.#lastShortageNoticeMs < SHORTAGE_NOTICE_EVERY_MS) return;
        this.#lastShortageNoticeMs = nowMs;
        const { message, shortOf } = notice.failure;
        const way =
          shortOf === 'connections'
            ? 'it goes on with fewer calls at once'
            : 'it is tried again now and then';
        this.#say('machine_short', { lane: notice.lane, shortOf, message }, [
          this.#appearance.colours.yellow(`${message}; ${way}, and no document fails for it`),
        ]);
        return;
      }
      case 'failed':
        if (!this.#settings.verbose && !this.#settings.logJson) return;
        this.#say('call_failed', { lane: notice.lane, line: notice.line, ...notice.failure }, [
          `line ${formatCount(notice.line)}: ${notice.failure.kind}: ${notice.failure.message}`,
        ]);
        return;
      case 'lane_down':
        this.#say('lane_down', { lane: notice.lane, ...notice.failure }, [
          this.#appearance.colours.yellow(
            `${notice.lane} does not answer; its documents wait, and it is asked again now and then: ${messageOf(notice.failure)}`,
          ),
        ]);
        return;
      case 'lane_up':
        this.#say('lane_up', { lane: notice.lane, downForMs: Math.round(notice.downForMs) }, [
          `${notice.lane} answers again, after ${formatRemaining(notice.downForMs)}`,
        ]);
        return;
      case 'lane_set_aside':
        this.#say('lane_set_aside', { lane: notice.lane, ...notice.failure }, [
          this.#appearance.colours.yellow(
            `${notice.lane} is set aside, the other lanes go on: ${notice.failure.kind}: ${notice.failure.message}`,
          ),
        ]);
        return;
      case 'limit_reached':
        this.#say('limit_reached', { limit: notice.limit }, [
          this.#appearance.colours.yellow(`stopping: ${REACHED_LIMITS[notice.limit]}`),
        ]);
        return;
      case 'halted':
        this.#say('halted', { lane: notice.lane, ...notice.failure, ...notice.series }, [
          this.#appearance.colours.red(`stopping: ${notice.failure.kind}: ${notice.failure.message}`),
          ...(notice.series === null ? [] : seriesLines(notice.failure, notice.series)),
          `  try: ${FAILURE_ADVICE[notice.failure.kind].advice}`,
          ...(notice.series === null ? [] : ['  or go on all the same: llm-batch resume --no-guard']),
        ]);
        return;
      case 'store_trouble':
        this.#say('store_trouble', { message: notice.error.message }, [
          this.#appearance.colours.red(
            `${notice.error.message} Nothing new is sent; what was answered is held.`,
          ),
        ]);
        return;
      case 'store_recovered':
        this.#say('store_recovered', {}, ['the store can be written again']);
        return;
      case 'salvaged':
        this.#say('salvaged', { outcomes: notice.outcomes, path: notice.path }, [
          `${formatQuantity(notice.outcomes, 'answer')} kept in ${notice.path}; \`llm-batch resume\` stores ${notice.outcomes === 1 ? 'it' : 'them'}`,
        ]);
    }
  }

  interrupted(count: number, openCalls: number, graceMs: number): void {
    const calls = formatQuantity(openCalls, 'open call');
    const line =
      openCalls === 0
        ? 'stopping'
        : count === 1
          ? `stopping: waiting up to ${formatRemaining(graceMs)} for ${calls}; Ctrl-C again cuts them off`
          : `cutting off ${calls}`;
    this.#say('interrupted', { count, openCalls }, [line]);
  }

  importInterrupted(inputPath: string): void {
    this.#say('import_interrupted', {}, [
      `import interrupted; nothing was called. The same command goes on: llm-batch run ${shellWord(inputPath)}`,
    ]);
  }

  writing(): void {
    this.#snapshot = () => ({ ...EMPTY_SNAPSHOT, phase: 'writing' });
  }

  summary(end: RunEnd): void {
    const { run, summary, files } = end;
    if (end.readerGone) this.warn('The reader of standard output has gone; the run was stopped.');
    const shown = (path: string | null): string | null => (path === null ? null : this.#shownPath(path));
    this.#show(
      'ended',
      {
        run: run.name,
        end: end.end.reason,
        counts: summary.counts,
        calls: summary.calls,
        files: { ...files },
      },
      renderSummary(
        {
          runName: run.name,
          summary,
          elapsedMs: end.elapsedMs,
          callsMade: summary.calls.made - end.before.calls.made,
          haltReason: run.haltReason,
          simulated: run.simulated,
          prices: observationsOf(run).prices,
          files: {
            results: shown(files.resultsPath),
            errors: shown(files.errorsPath),
            rejects: shown(this.#rejectsPath),
          },
        },
        this.#columns,
        this.#appearance,
      ),
    );
  }

  /** Ends the bar that is drawn, if there is one. */
  stop(): void {
    this.#progress.stop();
  }

  get #columns(): number {
    return this.#context.stderr.columns || 100;
  }

  #shownPath(path: string): string {
    const short = relative(this.#context.workingFolder, path);
    return short === '' || short.startsWith('..') ? path : short;
  }

  /** Sentences, in which names and messages of others may stand. */
  #say(event: string, details: object, sentences: readonly string[]): void {
    this.#show(event, details, sentences.map(printableSentence));
  }

  /** @param lines rendered already */
  #show(event: string, details: object, lines: readonly string[]): void {
    if (this.#settings.logJson) {
      const time = new Date(this.#context.clock.now()).toISOString();
      this.#context.stderr.write(`${printableJson({ time, event, ...details })}\n`);
      return;
    }
    for (const line of lines) this.#progress.log(line);
  }
}

/** A server's own words seldom name the status. */
function messageOf({ message, httpStatus }: ProviderFailure): string {
  return httpStatus === undefined ? message : `${message} (HTTP ${httpStatus})`;
}

/** One whole example of the calls that all ended in one way. */
function seriesLines(failure: ProviderFailure, { calls, line, key }: FailedSeries): string[] {
  const { httpStatus, code, requestId, partialOutputJson } = failure;
  const facts = [
    `line ${formatCount(line)}`,
    `id ${key}`,
    ...(httpStatus === undefined ? [] : [`HTTP ${httpStatus}`]),
    ...(code === undefined ? [] : [code]),
    ...(requestId === undefined ? [] : [`request ${requestId}`]),
  ];
  return [
    `  ${formatCount(calls)} calls in a row ended like this; the last one: ${facts.join(' · ')}`,
    ...(partialOutputJson === undefined ? [] : [`  what there was of its answer: ${partialOutputJson}`]),
  ].map(printable);
}

/** As `colours` paints a whole sentence. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: colour is made of control characters
const PAINTED = /^(\u001b\[\d+m)(.*)(\u001b\[39m)$/s;

function printableSentence(sentence: string): string {
  const [, open = '', words = sentence, close = ''] = PAINTED.exec(sentence) ?? [];
  return open + printable(words) + close;
}
