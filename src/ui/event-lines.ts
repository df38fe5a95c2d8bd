/** What happens to a run, in sentences for people. */
import type { FailedCalls, ImportCounts, ImportPlan, RunEvent } from '../core/event.js';
import type { ProviderFailure } from '../core/failure.js';
import { printable } from '../core/foreign-text.js';
import type { Appearance } from './colours.js';
import { adviceOn } from './failure-advice.js';
import { FINDING_WORDS } from './finding-words.js';
import { REACHED_LIMITS } from './halt-reason.js';
import { shellWord } from './next-command.js';
import { formatCount, formatQuantity, formatRemaining } from './numbers.js';
import { sharingParts } from './summary-facts.js';

/**
 * @param run what a hint's command names
 * @returns none for what is only shown as progress, or not at all
 */
export function eventLines(event: RunEvent, appearance: Appearance, run: string): string[] {
  const sentences = [sentencesOf(event, appearance, shellWord(run))].flat();
  return sentences.map((sentence) => appearance.command(printableSentence(sentence)));
}

function sentencesOf(event: RunEvent, { colours }: Appearance, run: string): string | string[] {
  switch (event.type) {
    case 'imported': {
      const repeats =
        event.duplicates === 0
          ? ''
          : `, ${formatQuantity(event.duplicates, 'repeat')} kept as documents of their own`;
      return `${event.run}: ${formatQuantity(event.documents, 'document')} imported${repeats}`;
    }
    case 'planned':
      return `${event.run}: ${formatImportPlan(event)}`;
    case 'import_interrupted':
      return 'import interrupted; nothing was called. The same command goes on.';
    case 'sending':
      return `sending ${event.message} to ${event.model} at ${event.endpoint}`;
    case 'warning':
      return colours.yellow(event.message);
    case 'remark': {
      const { one, many, advice } = FINDING_WORDS[event.kind];
      const what = `${formatCount(event.count)} ${event.count === 1 ? one : many}`;
      return colours.yellow(`${what} (line ${formatCount(event.line)}: ${event.message}): ${advice}`);
    }
    case 'rescued':
      return rescueParts(event).join(' · ');
    case 'sharing':
      return `shared answers: ${sharingParts(event).join(' · ')}`;
    case 'throttled':
      return `${event.lane} is throttled: ${event.failure.message}`;
    case 'suspects':
      return colours.yellow(
        `looking for the document that brought the program down: one call at a time, ${formatCount(event.left)} left`,
      );
    case 'machine_short': {
      const { message, shortOf } = event.failure;
      const way =
        shortOf === 'connections' ? 'it goes on with fewer calls at once' : 'it is tried again now and then';
      return colours.yellow(`${message}; ${way}, and no document fails for it`);
    }
    case 'call_failed':
      return `line ${formatCount(event.line)}: ${event.failure.kind}: ${event.failure.message}`;
    case 'lane_down':
      return colours.yellow(
        `${event.lane} does not answer; its documents wait, and it is asked again now and then: ${messageOf(event.failure)}`,
      );
    case 'lane_up':
      return `${event.lane} answers again, after ${formatRemaining(event.downForMs)}`;
    case 'lane_set_aside':
      return colours.yellow(
        `${event.lane} is set aside, the other lanes go on: ${event.failure.kind}: ${event.failure.message}`,
      );
    case 'leases_lost':
      return colours.yellow(
        `${formatQuantity(event.documents, 'answer')} came too late and ${event.documents === 1 ? 'is' : 'are'} not stored: the document was another worker's or was cancelled meanwhile`,
      );
    case 'run_passed_over':
      return colours.yellow(`passed over: ${event.message}`);
    case 'limit_reached':
      return colours.yellow(`stopping: ${REACHED_LIMITS[event.limit]}`);
    case 'halted': {
      const { failure, series } = event;
      return [
        colours.red(`stopping: ${failure.kind}: ${failure.message}`),
        ...(series === null ? [] : seriesLines(failure, series)),
        `  try: ${adviceOn(failure).advice}`,
        ...(series === null ? [] : [`  or go on all the same: llm-batch resume ${run} --no-guard`]),
      ];
    }
    case 'remote_submitted':
      return `remote batch ${event.shard} is with ${event.lane}: ${formatQuantity(event.requests, 'request')} as ${event.remoteId}`;
    case 'remote_queue_full':
      return colours.yellow(
        `${event.lane} takes no more now; remote batch ${event.shard} is handed in again later, and no document fails for it: ${event.message}`,
      );
    case 'remote_settled': {
      const parts = [
        `${formatCount(event.completed)} answered`,
        ...(event.failed > 0 ? [`${formatCount(event.failed)} failed`] : []),
        ...(event.returned > 0 ? [`${formatQuantity(event.returned, 'document')} to send again`] : []),
      ];
      return `remote batch ${event.shard} ${event.state}: ${parts.join(' · ')}`;
    }
    case 'remote_overdue':
      return colours.yellow(
        `remote batch ${event.shard} is not done in time: it is cancelled, and what is left of it is sent directly`,
      );
    case 'remote_left': {
      const batches = formatQuantity(event.batches, 'remote batch', 'remote batches');
      return `${batches} with ${formatQuantity(event.documents, 'document')} go on at the provider; \`llm-batch resume ${run}\` fetches the answers`;
    }
    case 'responses_left': {
      const responses = formatQuantity(event.responses, 'background response');
      const words = event.responses === 1 ? 'goes on at the provider' : 'go on at the provider';
      return `${responses} ${words}; \`llm-batch resume ${run}\` fetches the answers`;
    }
    case 'response_kept':
      return colours.yellow(
        `a background response could not be deleted at the provider, which keeps it: ${messageOf(event.failure)}`,
      );
    case 'store_trouble':
      return colours.red(`${event.message} Nothing new is sent; what was answered is held.`);
    case 'store_recovered':
      return 'the store can be written again';
    case 'salvaged': {
      const them = event.outcomes === 1 ? 'it' : 'them';
      return `${formatQuantity(event.outcomes, 'answer')} kept in ${event.path}; \`llm-batch resume ${run}\` stores ${them}`;
    }
    case 'interrupted': {
      const calls = formatQuantity(event.openCalls, 'open call');
      if (event.openCalls === 0) return 'stopping';
      if (event.count > 1) return `cutting off ${calls}`;
      return `stopping: waiting up to ${formatRemaining(event.graceMs)} for ${calls}; Ctrl-C again cuts them off`;
    }
    default:
      return [];
  }
}

function rescueParts({ rescued, lostCalls, poisoned }: RunEvent & { readonly type: 'rescued' }): string[] {
  return [
    ...(rescued > 0 ? [`${formatQuantity(rescued, 'document')} back from a crash`] : []),
    ...(lostCalls > 0
      ? [`${formatQuantity(lostCalls, 'call')} may have been billed and will be repeated`]
      : []),
    ...(poisoned > 0 ? [`${formatQuantity(poisoned, 'document')} parked: open alone at three crashes`] : []),
  ];
}

/** `9,950 unchanged · 120 answered before · 40 changed · 10 new · 3 gone`; what is zero is left out. */
export function formatImportPlan(plan: Omit<ImportPlan, keyof ImportCounts>): string {
  const parts = [
    { count: plan.unchanged, word: 'unchanged' },
    { count: plan.answeredBefore, word: 'answered before' },
    { count: plan.changedOpen + plan.changedFinished, word: 'changed' },
    { count: plan.added, word: 'new' },
    { count: plan.gone, word: 'gone' },
  ].filter(({ count }) => count > 0);
  return parts.map(({ count, word }) => `${formatCount(count)} ${word}`).join(' · ') || 'no documents';
}

/** A server's own words seldom name the status. */
function messageOf({ message, httpStatus }: ProviderFailure): string {
  return httpStatus === undefined ? message : `${message} (HTTP ${httpStatus})`;
}

/** One whole example of the calls that all ended in one way. */
function seriesLines(failure: ProviderFailure, { calls, line, key }: FailedCalls): string[] {
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
  ];
}

/** As `colours` paints a whole sentence. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: colour is made of control characters
const PAINTED = /^(\u001b\[\d+m)(.*)(\u001b\[39m)$/s;

/** Names and messages of others may stand in it. */
function printableSentence(sentence: string): string {
  const [, open = '', words = sentence, close = ''] = PAINTED.exec(sentence) ?? [];
  return open + printable(words) + close;
}
