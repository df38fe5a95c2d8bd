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
  const fields: Field[] = [];
  if (snapshot.failed > 0) {
    fields.push({ variants: [`${formatCount(snapshot.failed)} failed`], importance: 9, paint: colours.red });
  }
  if (snapshot.remote !== null) return [...fields, ...remoteFields(snapshot.remote, snapshot)];
  const held = heldBackField(snapshot, colours);
  // While no server answers, the speed of the last minute says nothing any more.
  const isOutage = snapshot.heldBackBy === 'outage';
  if (!isOutage) fields.push(...speedFields(snapshot));
  if (snapshot.costMicroUsd !== null) {
    fields.push({ variants: [formatMoney(snapshot.costMicroUsd)], importance: 6 });
  }
  if (!isOutage) {
    const { openCalls, openResponses, concurrency } = snapshot;
    // What is asked for meanwhile takes no place of its own.
    const [open, what] = openResponses > 0 ? [openResponses, 'background responses'] : [openCalls, 'calls'];
    fields.push({
      variants: [
        `${formatCount(open)} of ${formatCount(concurrency)} ${what} open`,
        `${formatCount(open)} open`,
      ],
      importance: 3,
    });
  }
  if (snapshot.documentsPerCall !== null) {
    const count = formatCount(snapshot.documentsPerCall);
    fields.push({ variants: [`${count} documents a call`, `${count} a call`], importance: 2 });
  }
  if (held !== null) fields.push(held);
  return fields;
}

/** The provider decides how fast it goes. */
function remoteFields(remote: RemoteProgress, { costMicroUsd }: ProgressSnapshot): Field[] {
  const fields: Field[] = [];
  if (costMicroUsd !== null) fields.push({ variants: [formatMoney(costMicroUsd)], importance: 6 });
  if (remote.batches === 0) return [...fields, { variants: ['making remote batches'], importance: 7 }];
  const done = `${formatCount(remote.done)} of ${formatCount(remote.requests)}`;
  fields.push({ variants: [`${done} worked off at the provider`, `${done} worked off`], importance: 7 });
  fields.push({
    variants: [formatQuantity(remote.batches, 'remote batch', 'remote batches')],
    importance: 5,
  });
  if (remote.finalizing > 0) {
    fields.push({ variants: [`${formatCount(remote.finalizing)} finalizing`], importance: 4 });
  }
  if (remote.settling > 0) {
    fields.push({ variants: [`${formatCount(remote.settling)} being stored`], importance: 3 });
  }
  return fields;
}

function speedFields(snapshot: ProgressSnapshot): Field[] {
  const requests = `${formatRate(snapshot.requestsPerMinute)} req/min`;
  const tokens = `${formatTokens(snapshot.tokensPerMinute)} tok/min`;
  return [
    {
      variants:
        snapshot.requestsPerMinuteLimit === null
          ? [requests]
          : [
              `${formatRate(snapshot.requestsPerMinute)} of ${formatCount(snapshot.requestsPerMinuteLimit)} req/min`,
              requests,
            ],
      importance: 7,
    },
    {
      variants:
        snapshot.tokensPerMinuteLimit === null
          ? [tokens]
          : [
              `${formatTokens(snapshot.tokensPerMinute)} of ${formatTokens(snapshot.tokensPerMinuteLimit)} tok/min`,
              tokens,
            ],
      importance: 5,
    },
  ];
}

function heldBackField(snapshot: ProgressSnapshot, colours: ChalkInstance): Field | null {
  if (snapshot.suspectsLeft > 0) {
    const count = formatCount(snapshot.suspectsLeft);
    return {
      variants: [
        `looking for the document that brought the program down: one call at a time, ${count} left`,
        `one call at a time after crashes, ${count} left`,
        `one at a time, ${count} left`,
      ],
      importance: 8,
      paint: colours.yellow,
    };
  }
  const left = snapshot.heldBackForMs === null ? null : formatRemaining(snapshot.heldBackForMs);
  switch (snapshot.heldBackBy) {
    case null:
      return null;
    case 'requests':
      return { variants: ['held back by requests/min', 'limit: requests'], importance: 8 };
    case 'tokens':
      return { variants: ['held back by tokens/min', 'limit: tokens'], importance: 8 };
    case 'share':
      return { variants: ['held back by limits that others share', 'limit: shared'], importance: 8 };
    case 'concurrency':
      return { variants: ['held back by concurrency', 'limit: concurrency'], importance: 4 };
    case 'requests_per_day':
      return {
        variants: [
          `today's requests are used up${left === null ? '' : `, ${left} left`}`,
          left === null ? 'daily limit' : `daily limit ${left}`,
        ],
        importance: 8,
        paint: colours.yellow,
      };
    case 'pause':
      return {
        variants: [
          left === null ? 'paused by the server' : `paused by the server, ${left} left`,
          left === null ? 'paused' : `paused ${left}`,
        ],
        importance: 8,
        paint: colours.yellow,
      };
    case 'outage': {
      const since =
        snapshot.outageSinceMs === null ? '' : ` since ${formatTimeOfDay(snapshot.outageSinceMs)}`;
      const next = left === null ? '' : `, next try in ${left}`;
      return {
        variants: [
          `the server has not answered${since}${next}`,
          `no answer${since}${next}`,
          `no answer${since}`,
          'no answer',
        ],
        importance: 10,
        paint: colours.yellow,
      };
    }
    case 'trial':
      return { variants: ['trying one call first', 'first call'], importance: 4 };
    case 'retry_wait':
      return {
        variants: [
          left === null ? 'waiting to try again' : `next try in ${left}`,
          left === null ? 'retrying' : `retry ${left}`,
        ],
        importance: 8,
        paint: colours.yellow,
      };
  }
}

/** What stands below the bar after Ctrl-C. */
export function stoppingFields(snapshot: ProgressSnapshot, colours: ChalkInstance): Field[] {
  const open = snapshot.openCalls;
  if (open === 0) return [{ variants: ['stopping'], importance: 2, paint: colours.yellow }];
  const calls = `${formatCount(open)} ${open === 1 ? 'call' : 'calls'}`;
  const grace = snapshot.graceLeftMs === null ? '' : ` for up to ${formatRemaining(snapshot.graceLeftMs)}`;
  return [
    {
      variants: [`stopping, waiting${grace} for ${calls} to end`, `stopping, ${calls} open`, 'stopping'],
      importance: 2,
      paint: colours.yellow,
    },
    { variants: ['Ctrl-C again to cut them off', 'Ctrl-C cuts off'], importance: 1, paint: colours.dim },
  ];
}
