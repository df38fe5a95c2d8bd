/** One task's way through one call, as steps in a row: prepare → admit → record → send → judge. */

import type { CallEnd, CallShare } from '../core/call.js';
import type { Clock, Random } from '../core/clock.js';
import type { ProviderFailure } from '../core/failure.js';
import { shortLine } from '../core/foreign-text.js';
import { errorWithoutCall, type TaskError, type TaskOutcome } from '../core/outcome.js';
import { type AttemptHistory, decideRetry, isTrouble, type RetryPolicy } from '../core/retry.js';
import type { LeasedTask } from '../core/task.js';
import { NO_TOKENS, type TokenUsage } from '../core/usage.js';
import type { Cost, Grant, RefusalEffect, RefusalReason } from '../limiter/limiter.js';
import type { ProviderAnswer, ProviderReply, ProviderRequest } from '../provider/provider.js';
import { type BillingBounds, billedFor, mostTokensOf, NOTHING_SPENT, type RunBudget } from './billing.js';
import type { Lacking } from './budget.js';
import type { Journal } from './journal.js';
import type { Gate, Lane } from './lane.js';
import type { LaneHealth } from './lane-health.js';

export interface PreparedCall {
  /** A function where the body is large: called once the call is admitted, so that nobody holds it while waiting. */
  readonly request: ProviderRequest | LoadRequest;
  /** The model asked for, where a server does not say which one answered. */
  readonly model: string;
  readonly cost: Cost;
  readonly billing: BillingBounds;
  /** Whether an answer is what was asked for; null: any text is. */
  readonly checkOutput: CheckOutput | null;
  /** Told the real usage, so that later estimates follow it. */
  readonly learn: (usage: TokenUsage) => void;
}

/** Makes the request, or says what has come between since the call was prepared. Never rejects for that. */
export type LoadRequest = () => Promise<ProviderRequest | { readonly refused: TaskError }>;

/** Reads an answer's text. @returns what is stored of it as JSON text, or what is wrong with it, in words that may be foreign */
export type CheckOutput = (
  output: string,
) => Promise<{ readonly outputJson: string } | { readonly problem: string }>;

/** Renders a stored document as a request; a document that cannot be rendered any more is an error value. */
export type PrepareCall = (task: LeasedTask) => PreparedCall | { readonly refused: TaskError };

export interface CallContext {
  readonly runId: number;
  readonly prepare: PrepareCall;
  readonly clock: Clock;
  readonly random: Random;
  readonly retry: RetryPolicy;
  readonly timeoutMs: number;
  readonly gate: Gate;
  readonly journal: Journal;
  /** One controller per open call; aborting it cuts that call off. */
  readonly openCalls: Set<AbortController>;
  readonly isAborted: () => boolean;
  /** Whether the run is known to be in order, so that nothing but trouble means that a server is down. */
  readonly mayBeDown: () => boolean;
  /** Monotonic time since when throttling holds a task back; null when it does not. */
  readonly throttledSinceMs: (task: LeasedTask) => number | null;
  /** Null: the run has no budget. */
  readonly budget: RunBudget | null;
  /** No further call fits into the budget. */
  readonly onExhausted: (lacking: Lacking) => void;
}

/** What became of a task, and of the call that was made for it, if one was. */
export interface PerformedTask {
  readonly task: LeasedTask;
  /** Null: none was made. */
  readonly call: CallEnd | null;
  readonly outcome: TaskOutcome;
  readonly failure: ProviderFailure | null;
  readonly lane: Lane | null;
  /** What the call showed of its lane's server. */
  readonly laneChange: LaneChange | null;
}

export type LaneChange =
  | { readonly type: 'down' }
  /** It had not answered since that monotonic time. */
  | { readonly type: 'up'; readonly downSinceMs: number };

interface CalledTask extends PerformedTask {
  /** As the answer names it; null where it does not, or nothing was answered. */
  readonly answeredTier: string | null;
}

/** Makes at most one call and says what became of the task. */
export async function performTask(task: LeasedTask, context: CallContext): Promise<PerformedTask> {
  const prepared = context.prepare(task);
  if ('refused' in prepared)
    return uncalledTask(task, failedOutcome(task, null, prepared.refused, context.clock.now()));

  const { budget } = context;
  if (budget === null) return callFor(task, prepared, context);
  const most = budget.mostOf(prepared.billing);
  const answer = await budget.admit(most);
  if (answer !== 'granted') {
    if (answer !== 'closed') context.onExhausted(answer.exhausted);
    return uncalledTask(task, releaseOutcome(task, null));
  }
  let billed = NOTHING_SPENT;
  try {
    const performed = await callFor(task, prepared, context);
    billed = billedFor(performed.call, most, prepared.billing.serviceTier, performed.answeredTier);
    return performed;
  } finally {
    budget.settle(most, billed);
  }
}

function uncalledTask(task: LeasedTask, outcome: TaskOutcome): PerformedTask {
  return { task, call: null, outcome, failure: null, lane: null, laneChange: null };
}

async function callFor(task: LeasedTask, prepared: PreparedCall, context: CallContext): Promise<CalledTask> {
  const uncalled = (outcome: TaskOutcome): CalledTask => ({
    ...uncalledTask(task, outcome),
    answeredTier: null,
  });
  const { clock, gate, journal } = context;
  const admission = await gate.admit(prepared.cost);
  if (!admission.admitted) {
    if (!admission.impossible) return uncalled(releaseOutcome(task, null));
    return uncalled(failedOutcome(task, null, errorWithoutCall('too_large', admission.reason), clock.now()));
  }
  const { lane, grant } = admission;
  const withdraw = (): void => {
    lane.limiter.cancel(grant, clock.monotonicMs());
    gate.healthOf(lane).withdrawn(clock.monotonicMs());
    gate.poke();
  };

  const request = typeof prepared.request === 'function' ? await prepared.request() : prepared.request;
  if ('refused' in request) {
    withdraw();
    return uncalled(failedOutcome(task, null, request.refused, clock.now()));
  }
  const { billing } = prepared;
  const callId = await journal.start({
    runId: context.runId,
    tasks: [{ taskId: task.taskId, attemptToken: task.attemptToken }],
    lane: lane.name,
    startedAtMs: clock.now(),
    reservedTokens: prepared.cost.tokens,
    mostTokens: mostTokensOf(billing),
    mostCostMicroUsd: lane.mostOf(
      billing.model,
      billing.mostInputTokens,
      billing.outputCap,
      billing.serviceTier,
    ),
  });
  if (callId === null) {
    withdraw();
    return uncalled(releaseOutcome(task, null));
  }

  const sentAtMs = clock.monotonicMs();
  lane.limiter.sent(grant, sentAtMs);
  const reply = await send(request, lane, context);
  const endedAtMs = clock.monotonicMs();
  const health = gate.healthOf(lane);
  const standing = heard(health, task, reply, sentAtMs, endedAtMs, context.mayBeDown());
  const refusal = settleGrant(lane, grant, reply, health.downSinceMs !== null, endedAtMs);
  gate.poke();
  if ('usage' in reply && reply.usage !== null) prepared.learn(reply.usage);
  const checked = await checkReply(reply, prepared, lane);
  const call = callEnd(callId, checked, prepared.model, lane, endedAtMs - sentAtMs, clock.now());
  const failure = 'failure' in checked ? checked.failure : null;
  const answeredTier = ('usage' in reply ? reply.usage?.serviceTier : null) ?? null;
  const outcome = judge(task, checked, call, prepared.model, refusal, standing.trouble, context);
  if (outcome.action === 'failed') health.forget(task.taskId);
  return { task, call, lane, failure, outcome, answeredTier, laneChange: standing.laneChange };
}

interface Standing {
  readonly trouble: AttemptHistory['trouble'];
  readonly laneChange: LaneChange | null;
}

/** Takes what came back as word of the lane's server. */
function heard(
  health: LaneHealth,
  task: LeasedTask,
  reply: ProviderReply,
  sentAtMs: number,
  nowMs: number,
  mayBeDown: boolean,
): Standing {
  const isSilent = 'aborted' in reply || (!reply.ok && reply.failure.shortOf === 'connections');
  if (isSilent) return { trouble: null, laneChange: null };
  if (reply.ok || !isTrouble(reply.failure.kind)) {
    const downSinceMs = health.answered(task.taskId, sentAtMs, nowMs);
    return { trouble: null, laneChange: downSinceMs === null ? null : { type: 'up', downSinceMs } };
  }
  const isCutOff = reply.failure.shortOf === 'network';
  const trouble = health.troubled(task.taskId, task.attempts, nowMs, mayBeDown || isCutOff);
  return { trouble, laneChange: trouble.wentDown ? { type: 'down' } : null };
}

type CheckedReply =
  | (ProviderAnswer & { readonly outputJson: string })
  | Exclude<ProviderReply, ProviderAnswer>;

/** As long as other failures' messages are at most. */
const LONGEST_PROBLEM = 500;

/** An answer that is not what was asked for was billed all the same, and is a failure from here on. */
async function checkReply(
  reply: ProviderReply,
  { checkOutput }: PreparedCall,
  { provider }: Lane,
): Promise<CheckedReply> {
  if (!reply.ok) return reply;
  const checked = await (checkOutput === null
    ? { outputJson: JSON.stringify(reply.output) }
    : // Whatever an answer brings its check to, it is the answer's fault: the run goes on.
      checkOutput(reply.output).catch((error: unknown) => ({
        problem: `The answer could not be checked: ${String(error)}`,
      })));
  if ('outputJson' in checked) return { ...reply, ...checked };
  const { usage, costMicroUsd, hints, httpStatus, requestId, output } = reply;
  return {
    ok: false,
    usage,
    costMicroUsd,
    hints,
    failure: {
      kind: 'bad_output',
      message: shortLine(provider.redact?.(checked.problem) ?? checked.problem, LONGEST_PROBLEM),
      httpStatus,
      partialOutputJson: JSON.stringify(output),
      ...(requestId === null ? {} : { requestId }),
    },
  };
}

/** @returns what a refusal did to the lane; null for anything else */
function settleGrant(
  lane: Lane,
  grant: Grant,
  reply: ProviderReply,
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

/** A refused call whose lane goes on comes back after this at the least. */
const STRAY_WAIT_MS = 1_000;

function usedTokens(usage: TokenUsage | null): number | null {
  return usage === null ? null : usage.inputTokens + usage.outputTokens;
}

/** A server that breaks (500) is not one that is full (503, 529): to slow down does not mend it. */
function refusalReason({ kind, code, httpStatus }: ProviderFailure): RefusalReason | null {
  if (kind === 'overloaded') return httpStatus === 503 || httpStatus === 529 ? 'overload' : null;
  if (kind !== 'rate_limited') return null;
  return code === 'slow_down' ? 'slow_down' : 'rate';
}

function judge(
  task: LeasedTask,
  reply: CheckedReply,
  call: CallEnd,
  requestedModel: string,
  refusal: RefusalEffect | null,
  trouble: AttemptHistory['trouble'],
  context: CallContext,
): TaskOutcome {
  if (reply.ok) {
    return {
      action: 'completed',
      taskId: task.taskId,
      attemptToken: task.attemptToken,
      share: shareOf(call),
      atMs: call.finishedAtMs,
      result: {
        outputJson: reply.outputJson,
        model: reply.model === '' ? requestedModel : reply.model,
        finishReason: reply.finishReason,
        detailsJson: reply.detailsJson,
        responseJson: reply.responseJson,
      },
    };
  }
  if ('aborted' in reply) return releaseOutcome(task, call);
  return failureOutcome(task, call, reply.failure, refusal, trouble, context);
}

async function send(request: ProviderRequest, lane: Lane, context: CallContext): Promise<ProviderReply> {
  const controller = new AbortController();
  context.openCalls.add(controller);
  if (context.isAborted()) controller.abort();
  try {
    return await lane.provider.send(request, { timeoutMs: context.timeoutMs, signal: controller.signal });
  } finally {
    context.openCalls.delete(controller);
  }
}

function failureOutcome(
  task: LeasedTask,
  call: CallEnd,
  failure: ProviderFailure,
  refusal: RefusalEffect | null,
  trouble: AttemptHistory['trouble'],
  context: CallContext,
): TaskOutcome {
  const { retry, clock } = context;
  const history = { attempts: task.attempts, throttledSinceMs: context.throttledSinceMs(task), trouble };
  const decision = decideRetry(failure, history, retry, clock.monotonicMs(), context.random);
  switch (decision.action) {
    case 'halt':
      return releaseOutcome(task, call);
    case 'release':
      return {
        ...releaseOutcome(task, call),
        isThrottled: true,
        delayMs: releasedForMs(decision.delayMs, refusal, isTrouble(failure.kind)),
      };
    case 'fail':
      return failedOutcome(task, call, taskError(failure), clock.now());
    case 'retry':
      return {
        action: 'retry',
        taskId: task.taskId,
        attemptToken: task.attemptToken,
        share: shareOf(call),
        error: taskError(failure),
        delayMs: decision.delayMs,
      };
  }
}

/** A lane that slowed down holds the task back by itself; one that did not leaves the waiting to the task. */
function releasedForMs(delayMs: number, refusal: RefusalEffect | null, isTroubled: boolean): number | null {
  if (isTroubled) return delayMs;
  return refusal === 'stray' ? Math.max(STRAY_WAIT_MS, delayMs) : null;
}

/** The task goes back unharmed: no attempt used. The lane's pause, not the task, makes it wait. */
export function releaseOutcome(
  task: LeasedTask,
  call: CallEnd | null,
): Extract<TaskOutcome, { action: 'released' }> {
  return {
    action: 'released',
    taskId: task.taskId,
    attemptToken: task.attemptToken,
    share: shareOf(call),
    delayMs: null,
    isThrottled: false,
  };
}

function failedOutcome(task: LeasedTask, call: CallEnd | null, error: TaskError, atMs: number): TaskOutcome {
  const { taskId, attemptToken } = task;
  return { action: 'failed', taskId, attemptToken, share: shareOf(call), error, atMs };
}

/** A task that has the call for itself takes the whole bill. */
function shareOf(call: CallEnd | null): CallShare | null {
  return call === null ? null : { usage: call.usage, costMicroUsd: call.costMicroUsd };
}

function callEnd(
  callId: number,
  reply: ProviderReply,
  model: string,
  lane: Lane,
  latencyMs: number,
  finishedAtMs: number,
): CallEnd {
  const end = { callId, finishedAtMs, latencyMs, message: 'failure' in reply ? reply.failure.message : null };
  if ('aborted' in reply) {
    const free = reply.isUnsent ? { usage: NO_TOKENS, costMicroUsd: 0 } : { usage: null, costMicroUsd: null };
    return { ...end, ...free, httpStatus: null, kind: 'aborted', requestId: null };
  }
  if (!reply.ok && reply.failure.isUnsent) {
    const { kind } = reply.failure;
    return { ...end, httpStatus: null, kind, usage: NO_TOKENS, costMicroUsd: 0, requestId: null };
  }
  const { usage } = reply;
  // What the server itself says of the cost is nearer the bill than any table.
  const costMicroUsd = reply.costMicroUsd ?? (usage === null ? null : lane.costOf(model, usage));
  if (reply.ok) {
    return {
      ...end,
      httpStatus: reply.httpStatus,
      kind: null,
      usage,
      costMicroUsd,
      requestId: reply.requestId,
    };
  }
  const { httpStatus = null, kind, requestId = null } = reply.failure;
  return { ...end, httpStatus, kind, usage, costMicroUsd, requestId };
}

function taskError(failure: ProviderFailure): TaskError {
  return {
    kind: failure.kind,
    message: failure.message,
    httpStatus: failure.httpStatus ?? null,
    code: failure.code ?? null,
    requestId: failure.requestId ?? null,
    partialOutputJson: failure.partialOutputJson ?? null,
  };
}
