/** What a reply says of the lane that it came over: of its server's health, and of its limits. */
import type { ProviderFailure } from '../core/failure.js';
import { type AttemptHistory, isTrouble } from '../core/retry-decision.js';
import type { LeasedTask } from '../core/task.js';
import type { TokenUsage } from '../core/usage.js';
import type { Grant, RefusalEffect, RefusalReason } from '../limiter/limiter.js';
import type { ResponseReply } from '../provider/remote-responses.js';
import type { Lane } from './lane.js';
import type { LaneHealth } from './lane-health.js';

export type LaneChange =
  | { readonly type: 'down' }
  /** It had not answered since that monotonic time. */
  | { readonly type: 'up'; readonly downSinceMs: number };

export interface Heard {
  /** What the other calls of the lane say of this failure; see `AttemptHistory`. */
  readonly trouble: AttemptHistory['trouble'];
  readonly laneChange: LaneChange | null;
}

/**
 * Takes what came back as word of the lane's server.
 * @param task of several in one call, the one that stands for them
 */
export function heard(
  health: LaneHealth,
  { taskId, attempts }: LeasedTask,
  reply: ResponseReply,
  sentAtMs: number,
  nowMs: number,
  mayBeDown: boolean,
): Heard {
  const isSilent = 'aborted' in reply || (!reply.ok && reply.failure.shortOf === 'connections');
  if (isSilent) return { trouble: null, laneChange: null };
  if (reply.ok || !isTrouble(reply.failure.kind)) {
    const downSinceMs = health.answered(taskId, sentAtMs, nowMs);
    return { trouble: null, laneChange: downSinceMs === null ? null : { type: 'up', downSinceMs } };
  }
  const isCutOff = reply.failure.shortOf === 'network';
  const trouble = health.troubled(taskId, attempts, nowMs, mayBeDown || isCutOff);
  return { trouble, laneChange: trouble.wentDown ? { type: 'down' } : null };
}

/** @returns what a refusal did to the lane; null for anything else */
export function settleGrant(
  lane: Lane,
  grant: Grant,
  reply: ResponseReply,
  isDown: boolean,
  nowMs: number,
): RefusalEffect | null {
  const { limiter } = lane;
  if ('aborted' in reply) {
    limiter.commit(grant, null, nowMs);
    return null;
  }
  limiter.observe(reply.hints, nowMs, grant);
  if (reply.ok) {
    limiter.commit(grant, usedTokens(reply.usage), nowMs);
    limiter.succeeded(nowMs, grant);
    return null;
  }
  const { kind, retryAfterMs, isUnsent = false } = reply.failure;
  if (isUnsent) limiter.cancel(grant, nowMs);
  else limiter.commit(grant, kind === 'rate_limited' ? 0 : usedTokens(reply.usage), nowMs);
  const reason = isDown && isTrouble(kind) ? 'unreachable' : refusalReason(reply.failure);
  return reason === null ? null : limiter.throttled(retryAfterMs ?? null, nowMs, grant, reason);
}

function usedTokens(usage: TokenUsage | null): number | null {
  return usage === null ? null : usage.inputTokens + usage.outputTokens;
}

/** A server that breaks (500) is not one that is full (503, 529): to slow down does not mend it. */
function refusalReason({ kind, code, httpStatus }: ProviderFailure): RefusalReason | null {
  if (kind === 'overloaded') return httpStatus === 503 || httpStatus === 529 ? 'overload' : null;
  if (kind !== 'rate_limited') return null;
  return code === 'slow_down' ? 'slow_down' : 'rate';
}
