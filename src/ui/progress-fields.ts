/** The facts of a progress snapshot as words, shared by the bar and by the plain lines of a log. */
import type { ChalkInstance } from 'chalk';
import type { ProgressSnapshot, RemoteProgress } from '../core/progress-snapshot.js';
import type { Field } from './field-line.js';
import {
  formatCount,
  formatMoney,
  formatQuantity,
  formatRate,
  formatRemaining,
  formatTimeOfDay,
  formatTokens,
} from './numbers.js';

/** What stands below the bar while calls are made. */
export function runningFields(snapshot: ProgressSnapshot, colours: ChalkInstance): Field[] {
  const { failed, remote, costMicroUsd, documentsPerCall } = snapshot;
  const fields: Field[] = [];
  if (failed > 0) fields.push(field(9, `${formatCount(failed)} failed`, colours.red));
  // While no server answers, the speed of the last minute says nothing any more; with batches the provider decides it.
  const isCalling = remote === null && snapshot.heldBackBy !== 'outage';
  if (isCalling) fields.push(...speedFields(snapshot));
  if (costMicroUsd !== null) fields.push(field(6, formatMoney(costMicroUsd)));
  if (remote !== null) return [...fields, ...remoteFields(remote)];
  if (isCalling) fields.push(openField(snapshot));
  if (documentsPerCall !== null) {
    const count = formatCount(documentsPerCall);
    fields.push(field(2, [`${count} documents a call`, `${count} a call`]));
  }
  const held = heldBackField(snapshot, colours);
  return held === null ? fields : [...fields, held];
}

function field(importance: number, said: string | Field['variants'], paint?: Field['paint']): Field {
  const variants: Field['variants'] = typeof said === 'string' ? [said] : said;
  return { variants, importance, ...(paint && { paint }) };
}

function remoteFields({ batches, done, requests, finalizing, settling }: RemoteProgress): Field[] {
  if (batches === 0) return [field(7, 'making remote batches')];
  const share = `${formatCount(done)} of ${formatCount(requests)}`;
  return [
    field(7, [`${share} worked off at the provider`, `${share} worked off`]),
    field(5, formatQuantity(batches, 'remote batch', 'remote batches')),
    ...(finalizing > 0 ? [field(4, `${formatCount(finalizing)} finalizing`)] : []),
    ...(settling > 0 ? [field(3, `${formatCount(settling)} being stored`)] : []),
  ];
}

function openField({ openCalls, openResponses, concurrency }: ProgressSnapshot): Field {
  // What is asked for meanwhile takes no place of its own.
  const [open, what] = openResponses > 0 ? [openResponses, 'background responses'] : [openCalls, 'calls'];
  const count = formatCount(open);
  return field(3, [`${count} of ${formatCount(concurrency)} ${what} open`, `${count} open`]);
}

function speedFields(snapshot: ProgressSnapshot): Field[] {
  const ofLimit = (used: string, limit: string, unit: string): Field['variants'] =>
    limit === '' ? [`${used} ${unit}`] : [`${used} of ${limit} ${unit}`, `${used} ${unit}`];
  const { requestsPerMinuteLimit: requests, tokensPerMinuteLimit: tokens } = snapshot;
  const [mostRequests, mostTokens] = [
    requests === null ? '' : formatCount(requests),
    tokens === null ? '' : formatTokens(tokens),
  ];
  return [
    field(7, ofLimit(formatRate(snapshot.requestsPerMinute), mostRequests, 'req/min')),
    field(5, ofLimit(formatTokens(snapshot.tokensPerMinute), mostTokens, 'tok/min')),
  ];
}

function heldBackField(snapshot: ProgressSnapshot, { yellow }: ChalkInstance): Field | null {
  if (snapshot.suspectsLeft > 0) {
    const left = `${formatCount(snapshot.suspectsLeft)} left`;
    const lookedFor = `looking for the document that brought the program down: one call at a time, ${left}`;
    return field(
      8,
      [lookedFor, `one call at a time after crashes, ${left}`, `one at a time, ${left}`],
      yellow,
    );
  }
  const { heldBackForMs, outageSinceMs } = snapshot;
  const left = heldBackForMs === null ? null : formatRemaining(heldBackForMs);
  switch (snapshot.heldBackBy) {
    case null:
      return null;
    case 'requests':
      return field(8, ['held back by requests/min', 'limit: requests']);
    case 'tokens':
      return field(8, ['held back by tokens/min', 'limit: tokens']);
    case 'share':
      return field(8, ['held back by limits that others share', 'limit: shared']);
    case 'concurrency':
      return field(4, ['held back by concurrency', 'limit: concurrency']);
    case 'trial':
      return field(4, ['trying one call first', 'first call']);
    case 'requests_per_day': {
      const words = "today's requests are used up";
      if (left === null) return field(8, [words, 'daily limit'], yellow);
      return field(8, [`${words}, ${left} left`, `daily limit ${left}`], yellow);
    }
    case 'pause':
      if (left === null) return field(8, ['paused by the server', 'paused'], yellow);
      return field(8, [`paused by the server, ${left} left`, `paused ${left}`], yellow);
    case 'retry_wait':
      if (left === null) return field(8, ['waiting to try again', 'retrying'], yellow);
      return field(8, [`next try in ${left}`, `retry ${left}`], yellow);
    case 'outage': {
      const since = outageSinceMs === null ? '' : ` since ${formatTimeOfDay(outageSinceMs)}`;
      const next = `${since}${left === null ? '' : `, next try in ${left}`}`;
      const short = `no answer${since}`;
      const words: Field['variants'] = [
        `the server has not answered${next}`,
        `no answer${next}`,
        short,
        'no answer',
      ];
      return field(10, words, yellow);
    }
  }
}

/** What stands below the bar after Ctrl-C. */
export function stoppingFields(snapshot: ProgressSnapshot, colours: ChalkInstance): Field[] {
  const { openCalls, graceLeftMs } = snapshot;
  if (openCalls === 0) return [field(2, 'stopping', colours.yellow)];
  const calls = formatQuantity(openCalls, 'call');
  const grace = graceLeftMs === null ? '' : ` for up to ${formatRemaining(graceLeftMs)}`;
  const waiting = `stopping, waiting${grace} for ${calls} to end`;
  return [
    field(2, [waiting, `stopping, ${calls} open`, 'stopping'], colours.yellow),
    field(1, ['Ctrl-C again to cut them off', 'Ctrl-C cuts off'], colours.dim),
  ];
}
